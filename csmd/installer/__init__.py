"""Files outside csmd's directories: changes are planned, applied, recorded and reverted."""
