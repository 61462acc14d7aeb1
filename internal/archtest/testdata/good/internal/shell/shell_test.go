package shell

import (
	_ "example.com/good/internal/core/coretest"
	_ "example.com/good/internal/protocol/v1"
)
