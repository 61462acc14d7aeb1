// Package codec is public.
package codec

import _ "os"
