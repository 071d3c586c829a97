package windows

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// toolbox replaces the Windows programs: it replies in order, records each
// call, and fails a test that makes more calls than expected.
type toolbox struct {
	platform.Processes
	t       *testing.T
	answers []answer
	calls   [][]string
}

type answer struct {
	output string
	code   int
	err    error
}

func (b *toolbox) Run(_ context.Context, c platform.Command) (int, error) {
	b.t.Helper()
	b.calls = append(b.calls, append([]string{c.Path}, c.Args...))
	if len(b.answers) == 0 {
		b.t.Fatalf("unexpected call: %s %q", c.Path, c.Args)
	}
	next := b.answers[0]
	b.answers = b.answers[1:]
	if _, err := io.WriteString(c.Stdout, next.output); err != nil {
		b.t.Fatal(err)
	}
	return next.code, next.err
}

func (b *toolbox) called(t *testing.T, want ...[]string) {
	t.Helper()
	if !slices.EqualFunc(b.calls, want, slices.Equal) {
		t.Errorf("calls\n%q\nwant\n%q", b.calls, want)
	}
}

const featureInfo = "\r\nDeployment Image Servicing and Management tool\r\nVersion: 10.0.20348.681\r\n\r\n" +
	"Image Version: 10.0.20348.2849\r\n\r\nFeature Information:\r\n\r\nFeature Name : Containers\r\n" +
	"Display Name : Containers\r\nDescription : State : Nonsense\r\nRestart Required : Possible\r\n" +
	"State : %\r\n\r\nCustom Properties:\r\n\r\n(No custom properties found)\r\n\r\nThe operation completed " +
	"successfully.\r\n"

func TestFeatureState(t *testing.T) {
	for text, want := range map[string]platform.FeatureState{
		"Enabled":                       platform.FeatureEnabled,
		"Disabled":                      platform.FeatureDisabled,
		"Disabled with Payload Removed": platform.FeatureDisabled,
		"Enable Pending":                platform.FeatureEnablePending,
		"Disable Pending":               platform.FeatureDisablePending,
	} {
		box := &toolbox{t: t, answers: []answer{{output: strings.Replace(featureInfo, "%", text, 1)}}}
		got, err := features{dism: "dism", processes: box}.State(t.Context(), "Containers")
		switch {
		case err != nil:
			t.Errorf("%s: %v", text, err)
		case got != want:
			t.Errorf("%s: got is %v, want %v", text, got, want)
		}
		box.called(t, []string{"dism", "/Online", "/English", "/Get-FeatureInfo", "/FeatureName:Containers"})
	}
}

func TestFeatureFailures(t *testing.T) {
	for name, c := range map[string]struct {
		answer answer
		want   error
	}{
		"unknown": {answer{output: "Error: 0x800f080c\r\n\r\nFeature name Foo is unknown.\r\n", code: 0x800f080c},
			fault.ErrNotExist},
		"unelevated": {answer{code: 740}, fault.ErrPermission},
		"no dism":    {answer{err: fault.ErrNotExist}, fault.ErrNotSupported},
		"Wine's":     {answer{output: "\r\n"}, fault.ErrNotSupported},
	} {
		_, err := features{processes: &toolbox{t: t, answers: []answer{c.answer}}}.State(t.Context(), "Foo")
		if !errors.Is(err, c.want) {
			t.Errorf("%s: the error is %v, want %v", name, err, c.want)
		}
	}
	_, err := features{processes: &toolbox{t: t,
		answers: []answer{{output: "[==== 20% ====]\r\nError: 2\r\n\r\nIt broke.\r\n\r\nSee the log.\r\n",
			code: 2}}}}.Enable(t.Context(), "Foo")
	var failure *ToolError
	switch {
	case !errors.As(err, &failure):
		t.Errorf("broken: the error is %v, a %T, want a %T", err, err, failure)
	case failure.ExitCode != 2:
		t.Errorf("broken: failure.ExitCode is %v, want 2", failure.ExitCode)
	case !strings.HasSuffix(err.Error(), "It broke."):
		t.Errorf("broken: err.Error() does not end with %q:\n%s", "It broke.", err.Error())
	}
	if _, err := (features{processes: &toolbox{t: t, answers: []answer{{output: "?"}}}}).State(t.Context(),
		"Foo"); err == nil {
		t.Error("a state was made up")
	}
}

func TestFeatureChange(t *testing.T) {
	box := &toolbox{t: t, answers: []answer{{code: 3010}, {code: 0}}}
	f := features{dism: "dism", processes: box}
	switch reboot, err := f.Enable(t.Context(), "A"); {
	case err != nil:
		t.Error(err)
	case !reboot:
		t.Error("reboot is false, want true")
	}
	switch reboot, err := f.Disable(t.Context(), "B"); {
	case err != nil:
		t.Error(err)
	case reboot:
		t.Error("reboot is true, want false")
	}
	box.called(t,
		[]string{"dism", "/Online", "/English", "/Enable-Feature", "/FeatureName:A", "/All", "/NoRestart"},
		[]string{"dism", "/Online", "/English", "/Disable-Feature", "/FeatureName:B", "/NoRestart"})
}
