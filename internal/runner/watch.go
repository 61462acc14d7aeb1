package runner

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/runner/capability"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// watch looks at the machine and at the certificate from time to time.
func (a *Agent) watch() {
	a.probe()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var reported, swept, asked, tidied time.Time
	last := forge.HealthStatus(0)
	spread := rand.N(time.Hour) // so that a crowd does not renew in step
	for {
		select {
		case <-look.C:
		case <-a.life.Done():
			return
		}
		now := time.Now()
		health := a.look()
		a.do(a.admit)
		if c := a.newest(); c != nil && (health.Status != last || now.Sub(reported) >= reportEvery) {
			c.sayHealth(forge.MessageID{}, health)
			last, reported = health.Status, now
		}
		if now.Sub(swept) >= sweepEvery && a.dirty() {
			swept = now
			if _, err := a.sweep(); err != nil {
				a.cfg.Log.Warn("not everything that attempts left was removed", telemetry.KeyError, err)
			}
		}
		if now.Sub(tidied) >= tidyEvery {
			tidied = now
			if err := a.objects.Sweep(a.life); err != nil && a.life.Err() == nil {
				a.cfg.Log.Warn("what is kept for later jobs was not tidied", telemetry.KeyError, err)
			}
		}
		if now.Sub(asked) >= renewAgain && a.renew(spread) {
			asked = now
		}
	}
}

// look reads the machine anew and says how it is.
func (a *Agent) look() forge.Health {
	reading := a.host.Read()
	a.mu.Lock()
	a.reading = reading
	a.mu.Unlock()
	return a.health(reading, nil)
}

// glance is look for somebody who waits for the answer. Of the machine it reads what the checks are about, and no more:
// what the kernel says of waiting and of memory takes longer than the way to the daemon and back.
func (a *Agent) glance(kinds []forge.HealthCheckKind) forge.Health {
	a.mu.Lock()
	reading := a.reading
	a.mu.Unlock()
	reading.Disk, reading.DiskAll, reading.DiskErr = a.host.Disk()
	return a.health(reading, kinds)
}

// health runs checks on what was read.
func (a *Agent) health(reading capability.Reading, kinds []forge.HealthCheckKind) forge.Health {
	if err := a.disk.err(); err != nil {
		reading.DiskErr = errors.Join(reading.DiskErr, err)
	}
	leaf := a.who().Leaf()
	a.mu.Lock()
	facts := a.facts
	a.mu.Unlock()
	facts.Reading, facts.Now, facts.NotBefore, facts.NotAfter = reading, clock.Wall(), leaf.NotBefore, leaf.NotAfter
	return capability.Check(facts, kinds)
}

// report sends a report of the agent's health, by itself or as the answer to a probe.
func (c *conn) report(re forge.MessageID, probe *agentv1.ProbeRequestV1) {
	var kinds []forge.HealthCheckKind
	if probe != nil {
		kinds = probe.Kinds()
	}
	c.sayHealth(re, c.a.glance(kinds))
}

func (c *conn) sayHealth(re forge.MessageID, h forge.Health) {
	if c.link.State() != forge.ConnActive && c.link.State() != forge.ConnDraining {
		return
	}
	c.say(re, agentv1.NewHealthReport(c.a.Runner(), c.a.session, h))
}

func (a *Agent) noteExecutor(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.facts.Executor = err
}

func (a *Agent) noteCleanUp(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.facts.CleanUp = err
}

// dirty reports whether a clean-up has left something.
func (a *Agent) dirty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.facts.CleanUp != nil
}

// probe looks at what the machine can do anew, and tells the core.
func (a *Agent) probe() {
	caps, err := a.host.Capabilities(a.life)
	if err == nil {
		err = caps.Validate()
	}
	if err != nil {
		a.cfg.Log.Warn("the machine was not seen whole; what was known stands", telemetry.KeyError, err)
		return
	}
	a.do(func() {
		a.caps = caps
		a.admit()
	})
}

// who is the agent's present identity.
func (a *Agent) who() *trust.Identity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.identity
}

// renew asks for the next certificate if that is due, and reports whether it has asked.
func (a *Agent) renew(spread time.Duration) bool {
	id := a.who()
	leaf := id.Leaf()
	due := trust.RenewAt(leaf).Add(min(spread, leaf.NotAfter.Sub(leaf.NotBefore)/24))
	c := a.newest()
	if clock.Wall().Before(due) || c == nil || c.link.State() != forge.ConnActive {
		return false
	}
	request, err := enroll.NewRenewal(id, a.session)
	if err != nil {
		a.cfg.Log.Error("no request for the next certificate could be made", telemetry.KeyError, err)
		return true
	}
	a.cfg.Log.Info("the certificate is due: the next one is asked for")
	c.say(forge.MessageID{}, request)
	return true
}

// renewed takes the next certificate: onto the disk, into the handshakes to come, and into use on a new connection beside
// the present one.
func (a *Agent) renewed(w *agentv1.CertificateIssuedV1) {
	id, err := enroll.Renewed(a.who(), w)
	if err == nil {
		err = a.become(id)
	}
	if err != nil {
		a.cfg.Log.Error("the next certificate was not taken", telemetry.KeyError, err)
		return
	}
	a.post(core.Reconnect{})
}

// become stores an identity, and only then uses it.
func (a *Agent) become(id *trust.Identity) error {
	a.saving.Lock()
	defer a.saving.Unlock()
	if err := a.trust.Save(id); err != nil {
		return err
	}
	a.source.Set(id.TLS())
	a.mu.Lock()
	a.identity = id
	a.mu.Unlock()
	a.cfg.Log.Info("this runner has a new certificate", "expires", id.Leaf().NotAfter)
	return nil
}
