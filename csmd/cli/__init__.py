"""The command line, on the socket like every rim."""
