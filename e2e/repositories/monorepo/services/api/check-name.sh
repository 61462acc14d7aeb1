grep -q "^name=api$" settings
