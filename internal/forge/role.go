package forge

import "fmt"

// Role is what somebody who asks the daemon may do. It is of the token that is shown, and given by an administrator.
type Role uint8

// The roles. Each may do what those below it may.
const (
	RoleViewer    Role = 1 // sees runs, logs, artifacts and the fleet; changes nothing
	RoleDeveloper Role = 2 // submits runs with what they need, and cancels them; sees which secrets there are
	RoleAdmin     Role = 3 // runners, tokens, secrets and the daemon itself
)

var roleNames = []string{"", "viewer", "developer", "admin"}

func (r Role) String() string { return name(roleNames, uint8(r)) }

// ParseRole reads what String writes.
func ParseRole(s string) (Role, error) { return word[Role]("role", roleNames, s) }

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r >= RoleViewer && r <= RoleAdmin }

// May reports whether r may do what asks for a role.
func (r Role) May(needed Role) bool { return r.Valid() && needed.Valid() && r >= needed }

// CheckTokenName refuses what is no name for an access token.
func CheckTokenName(s string) error {
	if !isName(s, MaxName) {
		return fmt.Errorf("%q is no name: use letters, digits, dots, dashes and underscores, at most %d", clip(s), MaxName)
	}
	return nil
}
