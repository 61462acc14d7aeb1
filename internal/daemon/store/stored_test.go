package store

import (
	"reflect"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// What is stored as a document is read by every later build. A field that is renamed in the domain would read as empty: then
// the text here has to stay readable, by a type of this package or a migration.
func TestDocumentsAreStoredAsEverBefore(t *testing.T) {
	for _, test := range []struct {
		value any
		text  string
	}{
		{forge.Leg{{Axis: "os", Value: "linux"}}, `[{"Axis":"os","Value":"linux"}]`},
		{[]forge.JobNeed{{Job: "build", Optional: true}}, `[{"Job":"build","Optional":true}]`},
		{
			forge.RetryPolicy{Max: 1, On: []forge.RetryWord{forge.RetryExit}, ExitCodes: []uint8{3, 4}, Infra: 2},
			`{"Max":1,"On":"Ag==","ExitCodes":"AwQ=","Infra":2}`,
		},
		{forge.Resources{CPU: 1, Memory: 2, Disk: 3, Slots: 4}, `{"CPU":1,"Memory":2,"Disk":3,"Slots":4}`},
		{
			forge.ResourceSummary{Total: forge.Resources{CPU: 1}, Pressure: forge.PressureDisk},
			`{"Total":{"CPU":1,"Memory":0,"Disk":0,"Slots":0},"Reserved":{"CPU":0,"Memory":0,"Disk":0,"Slots":0},` +
				`"Active":{"CPU":0,"Memory":0,"Disk":0,"Slots":0},"Free":{"CPU":0,"Memory":0,"Disk":0,"Slots":0},"Pressure":4}`,
		},
		{
			forge.HealthOf([]forge.HealthCheck{{Kind: forge.CheckClock, Status: forge.Degraded, Detail: "d"}}),
			`{"Status":2,"Checks":[{"Kind":7,"Status":2,"Detail":"d"}]}`,
		},
		{
			forge.Capabilities{
				SchemaVersion: 1, Platform: forge.Platform{OS: "linux", Arch: "amd64", Version: "6"},
				Toolchains: []forge.Toolchain{{ID: "go", Version: "1", Source: forge.ToolchainHost, Verified: true, Warm: true}},
				Sandboxes:  []forge.Sandbox{{Kind: forge.SandboxOCI, Levels: []string{"l"}}},
				Devices:    []forge.DeviceCount{{Kind: "gpu", Count: 1}}, Labels: []string{"a"}, Features: []string{"f"},
			},
			`{"SchemaVersion":1,"Platform":{"OS":"linux","Arch":"amd64","Version":"6"},"Resources":{"CPU":0,"Memory":0,"Disk":0,"Slots":0},` +
				`"Toolchains":[{"ID":"go","Version":"1","Source":2,"Verified":true,"Warm":true}],"Sandboxes":[{"Kind":2,"Levels":["l"]}],` +
				`"Devices":[{"Kind":"gpu","Count":1}],"Labels":["a"],"Features":["f"]}`,
		},
		{
			finished{
				Result: forge.Result{
					Class: forge.Signal, ExitCode: 1, Signal: 9, Limit: 2, Peak: ^uint64(0), Duration: time.Second,
					Steps: []forge.StepResult{{Index: 1, Class: forge.ExitCode, ExitCode: 2, Signal: 3, Start: 4, Duration: 5}},
				},
				CancelSeen: true, Capture: forge.OutputMissing,
				Outputs: []forge.OutputRef{{Output: 1, Ref: digest.Ref{Digest: digest.Digest{0: 1, 31: 2}, Bytes: 7}, Tree: true}},
			},
			`{"Result":{"Class":3,"ExitCode":1,"Signal":9,"Limit":2,"Peak":18446744073709551615,` +
				`"Steps":[{"Index":1,"Class":2,"ExitCode":2,"Signal":3,"Start":4,"Duration":5}],"Duration":1000000000},` +
				`"CancelSeen":true,"Capture":8,"Outputs":[{"Output":1,` +
				`"Ref":{"Digest":[1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,2],"Bytes":7},"Tree":true}]}`,
		},
	} {
		if got := toText(test.value); got != test.text {
			t.Errorf("%T is stored as\n%s\nwant\n%s", test.value, got, test.text)
		}
		back := reflect.New(reflect.TypeOf(test.value))
		if err := (document{back.Interface()}).Scan(test.text); err != nil || !reflect.DeepEqual(back.Elem().Interface(), test.value) {
			t.Errorf("%s reads as %+v, %v", test.text, back.Elem().Interface(), err)
		}
	}
}

func TestColumnsThatHoldSomethingElseAreAnErrorNeverAPanic(t *testing.T) {
	var u forge.ULID
	var d digest.Digest
	var n uint32
	var b bool
	var leg forge.Leg
	for what, err := range map[string]error{
		"a short id": id(&u).Scan([]byte{1}), "no id": id(&u).Scan(nil), "a text for a digest": hash(&d).Scan("b3:"),
		"a text for a number": num(&n).Scan("1"), "a flag of 2": flag{&b}.Scan(int64(2)),
		"half a document": doc(&leg).Scan(`[{"Axis`), "a number for a document": doc(&leg).Scan(int64(1)),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestNumbersOfSixtyFourBitsComeBackAsTheyWere(t *testing.T) {
	s := hooked(t, hooks{})
	for _, want := range []uint64{0, 1, 1<<63 - 1, 1 << 63, ^uint64(0)} {
		var got uint64
		err := s.Update(t.Context(), ClassRest, func(tx *Tx) error {
			_, err := tx.find(`SELECT CAST(? AS BIGINT)`, []any{toInt(want)}, num(&got))
			return err
		})
		if err != nil || got != want {
			t.Errorf("%d came back as %d, %v", want, got, err)
		}
	}
}
