package git

import (
	"context"
	"net/url"
	"strings"
)

// remotes reads what the repository's configuration says of remotes and of the branches that follow them.
func (r *Repo) remotes(ctx context.Context) (map[string]string, error) {
	out, err := r.output(ctx, "config", "--local", "-z", "--get-regexp", `^(remote\..*\.url|branch\..*\.remote)$`)
	if err != nil && !exited(err, 1) { // 1: nothing there
		return nil, err
	}
	found := map[string]string{}
	for record := range records(out) {
		key, value, _ := strings.Cut(record, "\n")
		if _, ok := found[key]; !ok { // the first URL of a remote is the one to fetch from
			found[key] = value
		}
	}
	return found, nil
}

// origin chooses the remote that a repository comes from: the one that its branch follows, else origin, else the only one.
func origin(config map[string]string, branch string) string {
	if remote, ok := config["branch."+branch+".remote"]; ok {
		if at, ok := config["remote."+remote+".url"]; ok {
			return at
		}
	}
	if at, ok := config["remote.origin.url"]; ok {
		return at
	}
	only := ""
	for key, value := range config {
		if strings.HasPrefix(key, "remote.") {
			if only != "" {
				return ""
			}
			only = value
		}
	}
	return only
}

// publicURL is what may be told of a remote's address: no user, no password, no query, where tokens are put. What names a
// place on this machine, or a helper program, says nothing elsewhere and is left out. The user's name stays for SSH, where
// it is part of the address and no secret.
func publicURL(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return scpAddress(address)
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || strings.ContainsAny(rest, "\x00\n") {
		return ""
	}
	switch strings.ToLower(scheme) {
	case "ssh", "git+ssh", "ssh+git":
		if at.User != nil {
			at.User = url.User(at.User.Username())
		}
	case "http", "https", "git":
		at.User = nil
	default:
		return ""
	}
	at.RawQuery, at.ForceQuery, at.Fragment, at.RawFragment = "", false, "", ""
	return at.String()
}

// scpAddress takes the form user@host:path, which git tells from a path by a colon before any slash.
func scpAddress(address string) string {
	host, path, ok := strings.Cut(address, ":")
	if !ok || strings.ContainsAny(host, `/\`) || strings.HasPrefix(path, ":") || len(host) < 2 { // C:\folder, helper::address
		return ""
	}
	user, name, ok := strings.Cut(host, "@")
	if ok && (user == "" || name == "" || strings.Contains(user, ":")) {
		return ""
	}
	if strings.ContainsAny(address, "\x00\n") || strings.Contains(path, "@") {
		return ""
	}
	return address
}
