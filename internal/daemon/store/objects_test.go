package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/daemon/store/storetest"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestWhichProjectHoldsWhichObjectIsThatOfTheModel(t *testing.T) {
	y := newYard(t)
	storetest.Objects(t, y.Store, &y.now)
}

func TestOneCallHoldsNoMoreObjectsThanATransactionMay(t *testing.T) {
	y := newYard(t)
	refs := make([]digest.Ref, store.MaxHeld+1)
	for i := range refs {
		refs[i] = digest.Ref{Digest: digest.Digest{1, byte(i), byte(i >> 8)}, Bytes: 1}
	}
	hold := func(refs []digest.Ref) error {
		return y.try(func(tx *store.Tx) error { return tx.Hold("p", refs) })
	}
	if err := hold(refs); err == nil {
		t.Error("one past the bound was held")
	}
	if err := hold(refs[1:]); err != nil {
		t.Error(err)
	}
	y.see(func(v *store.View) error {
		if _, err := v.Held("p", refs); err == nil {
			t.Error("one past the bound was asked for")
		}
		n, err := v.ObjectCount()
		if err == nil && n != store.MaxHeld {
			t.Errorf("%d objects are held", n)
		}
		return err
	})
}

func TestAnObjectsUsesAreTheOutputsWhoseRootItIs(t *testing.T) {
	y := newYard(t)
	n := submission("")
	y.submit(n)
	y.settle(n.ID, plan("build"))
	lease := y.offer(y.runner("one"), n.Jobs[0].ID)
	out := forge.OutputRef{Output: 2, Ref: digest.RefOf([]byte("tree")), Tree: true}
	y.later(func(tx *store.Tx) error { return tx.RecordUpload(lease.Attempt, out, true) })
	y.see(func(v *store.View) error {
		uses, err := v.ObjectUses(out.Ref, 10)
		want := []store.ObjectUse{{Project: n.Project, Run: n.ID, Job: lease.Job, Attempt: lease.Attempt, Output: out, Live: true}}
		if diff := cmp.Diff(want, uses); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		return err
	})
}
