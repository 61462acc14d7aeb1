package codec

import _ "github.com/oklog/ulid/v2"
