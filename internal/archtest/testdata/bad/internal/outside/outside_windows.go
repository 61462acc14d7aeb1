// want load "a build constraint leaves the file out"

package outside

import _ "os/exec" // want outside "imports os/exec"
