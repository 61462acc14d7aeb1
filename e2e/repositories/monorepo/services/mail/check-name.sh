grep -q "^name=mail$" settings
