package telemetry_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/telemetry"
)

func TestTheLevelChangesWhileTheProgramRuns(t *testing.T) {
	var out bytes.Buffer
	var level slog.LevelVar
	log := telemetry.NewLogger(&out, &level, telemetry.Text)
	log.Debug("one")
	level.Set(slog.LevelDebug)
	log.With(telemetry.KeyRunner, "r").Debug("two")
	if s := out.String(); strings.Contains(s, "one") || !strings.Contains(s, "msg=two runner=r") {
		t.Errorf("logged %q", s)
	}
}

func TestLogsAreJSONWhereNobodyReads(t *testing.T) {
	var out bytes.Buffer
	telemetry.NewLogger(&out, slog.LevelInfo, telemetry.Auto).Info("hello\nworld", telemetry.KeyCount, 3)
	var record map[string]any
	if err := json.Unmarshal(out.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	if record["msg"] != "hello\nworld" || record["count"] != 3.0 || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
		t.Errorf("record %q", out.String())
	}
}

func TestLevelsAndFormatsAreReadStrictly(t *testing.T) {
	for text, want := range map[string]slog.Level{"debug": -4, "INFO": 0, "": 0, "warn": 4, "error": 8} {
		if got, err := telemetry.ParseLevel(text); err != nil || got != want {
			t.Errorf("ParseLevel(%q) = %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]telemetry.Format{"": telemetry.Auto, "auto": telemetry.Auto, "text": telemetry.Text, "json": telemetry.JSON} {
		if got, err := telemetry.ParseFormat(text); err != nil || got != want {
			t.Errorf("ParseFormat(%q) = %v, %v", text, got, err)
		}
	}
	if _, err := telemetry.ParseLevel("loud"); err == nil {
		t.Error("the level loud was taken")
	}
	if _, err := telemetry.ParseFormat("xml"); err == nil {
		t.Error("the format xml was taken")
	}
}

// named has a text form.
type named uint8

func (n named) String() string { return map[named]string{3: "Running"}[n] }

func TestAValueWithATextFormIsThatTextInBothFormats(t *testing.T) {
	for _, format := range []telemetry.Format{telemetry.Text, telemetry.JSON} {
		var out bytes.Buffer
		telemetry.NewLogger(&out, slog.LevelInfo, format).Info("said", telemetry.KeyState, named(3))
		if !strings.Contains(out.String(), "Running") {
			t.Errorf("format %d: %s", format, out.String())
		}
	}
}
