"""The wheel holds every tracked file of the package, and the tested package is the same byte for byte."""

import subprocess
import sys
import zipfile
from pathlib import Path

import csmd

wheel = zipfile.ZipFile(sys.argv[1])
names = [name for name in wheel.namelist() if name.startswith("csmd/")]
command = ["git", "ls-files", "csmd", "hooks", "systemd", "launchd", ".claude-plugin"]
tracked = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
wanted = {name if name.startswith("csmd/") else f"csmd/_share/{name}" for name in tracked}
assert set(names) == wanted, sorted(set(names) ^ wanted)
site = Path(csmd.__file__).parent.parent
assert "site-packages" in site.parts, f"the tests ran against {site}, not against the installed package"
different = [name for name in names if site.joinpath(name).read_bytes() != wheel.read(name)]
assert not different, different
assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist()), wheel.namelist()
print(f"{Path(sys.argv[1]).name}: {len(names)} files, the tested package is the same byte for byte")
