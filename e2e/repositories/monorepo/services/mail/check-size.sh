test "$(wc -l < settings)" -eq 1
