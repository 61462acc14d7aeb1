// want load "a build constraint leaves the file out"

package systems
