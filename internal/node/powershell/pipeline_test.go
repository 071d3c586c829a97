package powershell_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/node/powershell"
)

func TestScriptOfCmdlets(t *testing.T) {
	get := powershell.Call(`Hyper-V\Get-VM`, powershell.With("Id", powershell.String("it's $(me)")))
	pipeline := powershell.Pipeline{get}
	script := powershell.Script{
		powershell.Keep("vm", get),
		powershell.Do(powershell.Call(`Hyper-V\Stop-VM`, powershell.With("VM", powershell.Variable("vm")),
			powershell.Switch("Force"),
			powershell.With("Confirm", powershell.Off{}), powershell.With("Count", powershell.Number(-1)),
			powershell.With("Enabled", powershell.Flag(true)), powershell.With("Of", powershell.Result(pipeline)),
			powershell.With("Keys", powershell.Bytes{28, 156}), powershell.With("Arguments", powershell.Table{
				"b": powershell.Typed{Type: "uint16", Number: 7}, "a": powershell.String(`"`),
			}))),
		powershell.AsJSON(map[string]powershell.Pipeline{"vms": {get, powershell.Select(
			powershell.Of("Id", powershell.AsText), powershell.Of("Uptime", powershell.AsSeconds),
		)}}),
	}
	want := strings.Join([]string{
		`$vm = Hyper-V\Get-VM -Id 'it''s $(me)'`,
		`Hyper-V\Stop-VM -VM $vm -Force -Confirm:$false -Count -1 -Enabled $true -Of (Hyper-V\Get-VM -Id 'it''s $(me)')` +
			` -Keys [byte[]]@(28,156) -Arguments @{a='"';b=[uint16]7}`,
		`ConvertTo-Json -Compress -Depth 4 -InputObject @{vms=@(Hyper-V\Get-VM -Id 'it''s $(me)' | Select-Object -Property ` +
			`@{Name='Id';Expression={[string]$_.Id}},@{Name='Uptime';Expression={$_.Uptime.TotalSeconds}})}`,
	}, "\n")
	if got, err := script.Text(); err != nil || got != want {
		t.Errorf("got %v:\n%s\nwant:\n%s", err, got, want)
	}
}

func TestNamesAreNoPrograms(t *testing.T) {
	params := func(p ...powershell.Param) powershell.Script {
		return powershell.Script{{Pipeline: powershell.Pipeline{{Name: "Get-VM", Params: p}}}}
	}
	for name, script := range map[string]powershell.Script{
		"cmdlet":    {{Pipeline: powershell.Pipeline{{Name: "Get-VM; Remove-Item C:\\"}}}},
		"program":   {{Pipeline: powershell.Pipeline{{Name: "cmd.exe"}}}},
		"parameter": params(powershell.Switch("Id (calc)")),
		"variable":  params(powershell.With("Id", powershell.Variable("a;b"))),
		"key":       params(powershell.With("Id", powershell.Table{"a=(calc)": powershell.Number(1)})),
		"type":      params(powershell.With("Id", powershell.Typed{Type: "System.IO.File", Number: 1})),
		"property":  params(powershell.With("Id", powershell.Properties{powershell.Of("a'}", powershell.AsIs)})),
		"assigned":  {{Variable: "a b", Pipeline: powershell.Pipeline{{Name: "Get-VM"}}}},
		"NUL":       params(powershell.With("Id", powershell.String("a\x00b"))),
	} {
		if text, err := script.Text(); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Whatever a text holds, PowerShell reads it as one string, and the next parameter follows.
func TestEveryTextStaysAText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringOf(rapid.RuneFrom([]rune("ab'\"`$\n;|&{}()-‘’‚‛é€𝄞\ufeff"))).Draw(t, "text")
		script := powershell.Script{{Pipeline: powershell.Pipeline{{
			Name: "New-VM", Params: []powershell.Param{
				powershell.With("Name", powershell.String(want)), powershell.Switch("Force"),
			},
		}}}}
		text, err := script.Text()
		if err != nil {
			t.Fatal(err)
		}
		rest, found := strings.CutPrefix(text, "New-VM -Name '")
		if !found {
			t.Fatalf("%q does not begin with the command and its parameter", text)
		}
		if got, after := unquote(rest); got != want || after != " -Force" {
			t.Fatalf("%q is read as %q, then %q", text, got, after)
		}
	})
}
