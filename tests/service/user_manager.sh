# A real `systemd --user` where PID 1 is another: namespaces of mounts and processes of its own, a cgroup of its own.
# Run by tests/service/conftest.py under `unshare`; whoever ends this shell, the namespace's first process, ends all in it.
set -eu
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir "/sys/fs/cgroup/$CGROUP"
echo $$ >"/sys/fs/cgroup/$CGROUP/cgroup.procs"
"$SYSTEMD" --user --log-target=console --log-level=warning &
# Orphans come to us, the first process; a bash that waits reaps them.
wait $!
