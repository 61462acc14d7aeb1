package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// roleHelp says what each role may do.
const roleHelp = `
  viewer     sees runs, logs, artifacts and the runners; changes nothing
  developer  also starts, retries and cancels runs, uploads what they need, sees the names of secrets
  admin      also runners, tokens, secrets and the audit log`

func (a *app) tokenCommand() *cobra.Command {
	cmd := console.Group("token", "Let people and programs use the daemon, each with a role",
		a.tokenCreate(), a.tokenList(), a.tokenRemove(), a.tokenWhoAmI())
	cmd.Long = `Let people and programs use the daemon over HTTP, each with a role:
` + roleHelp + `

Whoever has the daemon's folder is an administrator already: by the socket in it, and by the token
in its file admin.token. The tokens with which machines become runners are others; see
"forgeyard runner enroll-token".`
	return cmd
}

func (a *app) tokenCreate() *cobra.Command {
	var request api.AccessTokenRequest
	var expires lifetime
	var out string
	cmd := &cobra.Command{
		Use: "create --name NAME --role ROLE", Short: "Make a token, and print it once", Args: cobra.NoArgs,
		Long: `Make a token and print it, alone on standard output, so that it can be piped to where it is needed.
It is kept nowhere: one that is lost is revoked and made anew. The roles are
` + roleHelp + `

Runs that are submitted with the token are of the class of trust that it has. Those of class
untrusted get no secrets and share no caches with others: use it for a program that starts runs of
what strangers propose. Runs of class protected run on protected runners alone. Neither a
repository nor a request can change the class.`,
		Example: `  forgeyard token create --name ann --role developer --expires 90d
  forgeyard token create --name wall --role viewer | ssh wall forgeyard context add ci --server https://ci.example.org --token-file -
  forgeyard token create --name pull-requests --role developer --trust untrusted --out pr.token`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkToken(&request); err != nil {
				return err
			}
			if expires != 0 {
				d := api.Duration(expires)
				request.ExpiresIn = &d
			}
			client, err := a.ask()
			if err != nil {
				return err
			}
			made, err := client.CreateAccessToken(cmd.Context(), &request)
			if err != nil {
				return err
			}
			return a.handOverAccess(made, out)
		},
	}
	f := cmd.Flags()
	f.StringVar(&request.Name, "name", "", "name of whoever will show it, as runs and the audit log will have it")
	f.StringVar(&request.Role, "role", "", "what it lets do: viewer, developer or admin")
	f.StringVar(&request.Trust, "trust", "", "class of the runs submitted with it: untrusted, trusted, protected (default trusted)")
	f.Var(&expires, "expires", "how long it is good, as in 12h, 30d or 1y (default: until it is revoked)")
	f.StringVar(&out, "out", "", "file to write the token to, readable by you alone, instead of printing it")
	return cmd
}

// checkToken finds what can be told before anybody is asked.
func checkToken(r *api.AccessTokenRequest) error {
	if r.Name == "" {
		return console.Usage("say for whom: --name NAME")
	}
	if err := forge.CheckTokenName(r.Name); err != nil {
		return console.Usage("--name: %v", err)
	}
	if r.Role == "" {
		return console.Usage("say what it lets do, --role ROLE:%s", roleHelp)
	}
	if _, err := forge.ParseRole(r.Role); err != nil {
		return console.Usage("--role: %v", err)
	}
	return nil
}

// handOverAccess gives a token to the user, in a file or on standard output.
func (a *app) handOverAccess(t *api.AccessToken, file string) error {
	until := "good until it is revoked"
	if t.ExpiresAt != nil {
		until = "good until " + when(t.ExpiresAt)
	}
	a.note("token %s %s, role %s, runs %s, %s", t.Name, t.ID, t.Role, t.Trust, until)
	server := a.server
	if server == "" || strings.HasPrefix(server, "unix:") {
		server = "URL"
	}
	if file != "" {
		if err := writeSecret(file, t.Token); err != nil {
			return fmt.Errorf("write the token: %w\nIt is lost, so revoke it: forgeyard token rm %s", err, t.Name)
		}
		a.note("Use it: forgeyard context add NAME --server %s --token-file %s", server, file)
		return nil
	}
	if a.output == "json" {
		return a.print().Value(t)
	}
	fmt.Fprintln(a.env.Stdout, t.Token)
	a.note("Use it: forgeyard context add NAME --server %s --token-file -", server)
	return nil
}

func (a *app) tokenList() *cobra.Command {
	var page api.Page
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List tokens, newest first, without their texts", Args: cobra.NoArgs,
		Example: "  forgeyard token list",
		Long:    "List tokens, newest first, without their texts. Those that have expired or were revoked stay for 90 days.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			list, err := client.AccessTokens(cmd.Context(), page)
			if err != nil {
				return err
			}
			defer a.more(cmd, list.Next)
			return a.print().Show(list, func(w io.Writer) {
				console.Row(w, "NAME", "ROLE", "RUNS", "STATE", "EXPIRES", "LAST USED", "CREATED", "BY", "ID")
				for _, t := range list.Items {
					expires := "never"
					if t.ExpiresAt != nil {
						expires = when(t.ExpiresAt)
					}
					console.Row(w, t.Name, t.Role, t.Trust, t.State, expires, when(t.UsedAt), when(t.CreatedAt), t.By, t.ID)
				}
			})
		},
	}
	pageFlags(cmd, &page)
	return cmd
}

func (a *app) tokenRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME|ID", Aliases: []string{"remove", "delete", "revoke"}, Short: "Revoke a token: what is under way with it ends", Args: cobra.ExactArgs(1),
		Example: "  forgeyard token rm wall",
		Long:    "Revoke a token for good. Whoever shows it is refused from now on, and logs and runs that are followed with it break\noff. Runs that were submitted with it go on; to end them: forgeyard runs cancel.",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			t, err := client.RevokeAccessToken(cmd.Context(), args[0])
			if isCode(err, api.CodeNotFound) {
				return fmt.Errorf("there is no token %s\nSee what there is: forgeyard token list", args[0])
			}
			if err != nil {
				return err
			}
			return a.print().Show(t, func(w io.Writer) { console.Row(w, fmt.Sprintf("token %s is revoked", t.Name)) })
		},
	}
}

func (a *app) tokenWhoAmI() *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Say whom the daemon takes you for, and with which role", Args: cobra.NoArgs,
		Example: "  forgeyard token whoami",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			who, err := client.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			return a.print().Show(who, func(w io.Writer) {
				console.Field(w, "Name", who.Name)
				console.Field(w, "Role", who.Role)
				console.Field(w, "Runs", who.Trust)
				console.Field(w, "Expires", when(who.ExpiresAt))
			})
		},
	}
}

// maxLifetime bounds what is read; the daemon takes less.
const maxLifetime = 100 * 365 * 24 * time.Hour

// lifetime is a flag for a long time: what time.ParseDuration reads, or a whole number of days, weeks or years.
type lifetime time.Duration

// String implements pflag.Value.
func (l *lifetime) String() string {
	if *l == 0 {
		return ""
	}
	return time.Duration(*l).String()
}

// Type implements pflag.Value.
func (*lifetime) Type() string { return "TIME" }

// Set implements pflag.Value.
func (l *lifetime) Set(text string) error {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		suffix string
		long   time.Duration
	}{{"d", day}, {"w", 7 * day}, {"y", 365 * day}} {
		digits, ok := strings.CutSuffix(text, unit.suffix)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 32); err == nil && n > 0 && n <= uint64(maxLifetime/unit.long) {
			*l = lifetime(time.Duration(n) * unit.long)
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxLifetime {
		return fmt.Errorf("write a time such as 12h, 30d or 1y")
	}
	*l = lifetime(d)
	return nil
}
