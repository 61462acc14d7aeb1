// Command relay stands between agents and a daemon and treats their datagrams as a bad network would. It is driven by
// lines on its standard input, so that a test or a person can cut and heal the network while real processes use it.
//
//	relay -listen 127.0.0.1:0 -to 127.0.0.1:7443 [-seed N] [-loss 0.1] [-duplicate 0.05] [-reorder 0.2] [-delay 20ms]
//	      [-jitter 5ms] [-rate 1000000] [-mtu 1280] [-cut 10s+5s,30s+2s:up] [-one-way up|down]
//
// It prints "listening ADDRESS" and then answers each line with one line, "ok …" or "error …":
//
//	cut [up|down|both]     drop everything in that direction
//	heal [up|down|both]    stop that
//	set NAME=VALUE …       change settings: loss, duplicate, reorder, delay, jitter, rate, mtu
//	rebind                 give every client a new address towards the daemon
//	stats                  what became of the datagrams so far
//	quit                   end
//
// The end of the input does not end the relay; a signal does. The same seed and the same traffic meet the same fate.
// One goroutine reads the input; it ends with the process.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/relay"
)

func main() {
	os.Exit(program.Run(context.Background(), program.Options{Name: "relay"}, func(ctx context.Context, _ *program.Program) error {
		return run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	}))
}

// run is the command: it ends with ctx, or when the input says quit.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	cfg, oneWay, err := options(args)
	if err != nil {
		return program.Exit(program.CodeUsage, err)
	}
	r, err := relay.Open(cfg)
	if err != nil {
		return err
	}
	r.Cut(oneWay...)
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	fmt.Fprintln(out, "listening", r.Addr())
	go func() {
		if obey(r, in, out) {
			quit()
		}
	}()
	return r.Run(ctx)
}

// options reads the command line.
func options(args []string) (cfg relay.Config, oneWay []relay.Direction, err error) {
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "address for agents")
	flags.StringVar(&cfg.To, "to", "", "address of the daemon")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "what the fate of datagrams follows from")
	values := map[string]*string{}
	for _, name := range relay.Names() {
		values[name] = flags.String(name, "", "see the setting of that name")
	}
	cuts := flags.String("cut", "", "schedule of cuts, as in 10s+5s,30s+2s:up")
	way := flags.String("one-way", "", "the only direction, up or down, that works from the start")
	if err := flags.Parse(args); err != nil {
		return cfg, nil, err
	}
	if cfg.To == "" || flags.NArg() > 0 {
		return cfg, nil, fmt.Errorf("name the daemon with -to host:port, and nothing without a flag")
	}
	for _, name := range relay.Names() {
		if *values[name] == "" {
			continue
		}
		if cfg.Settings, err = cfg.Settings.With(name, *values[name]); err != nil {
			return cfg, nil, err
		}
	}
	if cfg.Cuts, err = relay.ParseCuts(*cuts); err != nil {
		return cfg, nil, err
	}
	switch *way {
	case "":
	case "up":
		oneWay = []relay.Direction{relay.Down}
	case "down":
		oneWay = []relay.Direction{relay.Up}
	default:
		return cfg, nil, fmt.Errorf("-one-way %q: use up or down", *way)
	}
	return cfg, oneWay, nil
}

// obey carries out the lines of in and reports whether one of them said quit.
func obey(r *relay.Relay, in io.Reader, out io.Writer) bool {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if words[0] == "quit" {
			fmt.Fprintln(out, "ok")
			return true
		}
		if answer, err := carryOut(r, words); err != nil {
			fmt.Fprintln(out, "error", err)
		} else {
			fmt.Fprintln(out, strings.TrimSpace("ok "+answer))
		}
	}
	return false
}

func carryOut(r *relay.Relay, words []string) (answer string, err error) {
	switch words[0] {
	case "cut", "heal":
		ways, err := relay.ParseWays(strings.Join(words[1:], " "))
		if err != nil {
			return "", err
		}
		if words[0] == "cut" {
			r.Cut(ways...)
		} else {
			r.Heal(ways...)
		}
		return "", nil
	case "set":
		s := r.Settings()
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			if s, err = s.With(name, value); err != nil {
				return "", err
			}
		}
		return "", r.Set(s)
	case "rebind":
		return "", r.Rebind()
	case "stats":
		return r.Stats().String(), nil
	}
	return "", fmt.Errorf("no command %q: use cut, heal, set, rebind, stats or quit", words[0])
}
