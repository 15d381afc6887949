"""What is written outside csmd's directories: planned, applied, recorded, reverted."""
