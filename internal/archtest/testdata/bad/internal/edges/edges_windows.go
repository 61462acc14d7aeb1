package edges

import _ "example.com/bad/internal/order" // want import "internal/edges may not import internal/order"
