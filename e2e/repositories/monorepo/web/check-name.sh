grep -q "^name=web$" settings
