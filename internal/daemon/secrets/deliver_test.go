package secrets_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestAnAttemptGetsTheSecretsThatItsSpecificationNames(t *testing.T) {
	w := newWorld(t)
	w.set("default", "codecov/token", canary)
	l := w.accept(w.running("default", forge.TrustTrusted, "codecov/token", "codecov/token@1"))
	for _, ref := range []string{"codecov/token", "codecov/token@1"} {
		if value, version := w.get(l.of, ref); value != canary || version != "codecov/token@1" {
			t.Errorf("%s gave %q as %s", ref, value, version)
		}
	}
}

// Case B72: a job that is tried again gets the value of now, one that asked for a version that version.
func TestARotatedSecretIsNewForTheNextOneWhoAsks(t *testing.T) {
	w := newWorld(t)
	w.set("default", "token", canary+"-old")
	first := w.accept(w.running("default", forge.TrustTrusted, "token", "token@1"))
	w.set("default", "token", canary+"-new")
	if value, version := w.get(first.of, "token"); value != canary+"-new" || version != "token@2" {
		t.Errorf("after the rotation: %q, %s", value, version)
	}
	if value, _ := w.get(first.of, "token@1"); value != canary+"-old" {
		t.Errorf("the first version is %q", value)
	}
}

// Threat S23, and whoever else asks for what is not theirs.
func TestNobodyElseGetsASecret(t *testing.T) {
	w := newWorld(t)
	w.set("default", "token", canary)
	w.set("default", "other", canary)

	stranger := w.accept(w.running("default", forge.TrustUntrusted, "token"))
	w.denied(stranger.of, "token", "its run may have no secrets")

	neighbour := w.accept(w.running("neighbour", forge.TrustTrusted, "token"))
	w.denied(neighbour.of, "token", "its project has no such secret")

	l := w.running("default", forge.TrustTrusted, "token")
	w.denied(l.of, "token", "its lease is not the one that was accepted")
	w.accept(l)
	w.denied(l.of, "other", "its specification does not name it")
	w.denied(l.of, "nowhere", "its specification does not name it")

	wrong := l.of
	wrong.Lease = neighbour.of.Lease
	w.denied(wrong, "token", "its lease is not the one")
	wrong = l.of
	wrong.Attempt = neighbour.of.Attempt
	w.denied(wrong, "token", "its lease is not the one")
	wrong.Attempt = forge.AttemptID{ULID: l.of.Lease.ULID}
	w.denied(wrong, "token", "no such attempt")
	wrong = l.of
	wrong.Runner = neighbour.of.Runner
	w.denied(wrong, "token", "its lease is not the one")

	w.end(l)
	w.denied(l.of, "token", "or has ended")
}

func TestARemovedSecretIsGivenToNobody(t *testing.T) {
	w := newWorld(t)
	w.set("default", "token", canary)
	l := w.accept(w.running("default", forge.TrustTrusted, "token"))
	w.must(w.Remove(t.Context(), "default", forge.SecretRef{Name: "token"}, "bob"))
	w.denied(l.of, "token", "its project has no such secret")
}

// Where nobody has ever set a secret there is no key either, and that is not what is wrong.
func TestASecretThatNobodyHasSetIsNotBlamedOnTheKey(t *testing.T) {
	w := newWorld(t)
	w.denied(w.accept(w.running("default", forge.TrustTrusted, "token")).of, "token", "its project has no such secret")
}

func TestEveryChangeAndDeliveryIsOnRecordWithoutTheValue(t *testing.T) {
	w := newWorld(t)
	w.set("default", "token", canary)
	l := w.accept(w.running("default", forge.TrustTrusted, "token"))
	w.get(l.of, "token")
	w.must(w.Remove(t.Context(), "default", forge.SecretRef{Name: "token", Version: 1}, "bob"))
	var got []string
	for _, e := range w.audits() {
		got = append(got, fmt.Sprintf("%s by %s of %s: %s", e.Kind, e.Actor, e.Subject, e.Detail))
	}
	want := []string{
		"secret.remove by bob of default token@1: ",
		"secret.deliver by agent of default token@1: attempt " + l.of.Attempt.String(),
		"secret.set by ann of default token@1: ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
