package firstboot

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/format/powershell"
)

// stage is a step of the script, reported by its name.
type stage struct {
	name string
	file string // name of the stage's file in stages/, without the extension
	// required means that the stage decides whether the machine is usable. If any other stage
	// fails, its mark is Warned, and the script still ends with 0.
	required bool
	// last means that the stage runs only if no required stage has failed, since it removes the
	// means by which a person can examine the machine.
	last bool
}

// stages returns the stages in their order. Drivers, network and SSH come first, so that a person
// can log in and examine the failure of a later stage.
func (o Options) stages() []stage {
	var all []stage
	add := func(wanted bool, s stage) {
		if wanted {
			all = append(all, s)
		}
	}
	ends := o.end() != Stay
	add(o.DriverFolder != "", stage{name: "drivers", file: "drivers"})
	add(true, stage{name: "network", file: "network"})
	add(true, stage{name: "openssh", file: "openssh-" + string(o.OpenSSH), required: true})
	add(true, stage{name: "sshd", file: "sshd", required: true})
	add(true, stage{name: "keys", file: "keys", required: true})
	add(true, stage{name: "firewall", file: "firewall", required: true})
	add(true, stage{name: "power", file: "power"})
	add(true, stage{name: "policies", file: "policies"})
	add(true, stage{name: "account", file: "account"})
	add(true, stage{name: "sconfig", file: "sconfig"})
	add(o.AgentFile != "", stage{name: "agent", file: "agent"})
	add(true, stage{name: "autologon", file: "autologon", required: true})
	add(true, stage{name: "lsasecret", file: "lsasecret"})
	add(true, stage{name: "panther", file: "panther", required: true})
	add(o.Seal != nil, stage{name: "password", file: "password", required: true})
	add(!ends, stage{name: "eject", file: "eject", last: true})
	add(!ends, stage{name: "console", file: "console"})
	add(ends, stage{name: "hostkeys", file: "hostkeys", required: true, last: true})
	add(o.end() == Generalize, stage{name: "generalize", file: "generalize", required: true, last: true})
	return all
}

// Stages lists the names of the stages in their order, for progress.
func Stages(o Options) []string {
	var names []string
	for _, s := range o.stages() {
		names = append(names, s.name)
	}
	return names
}

// script returns the stage's PowerShell.
func (s stage) script() string {
	run := fmt.Sprintf("Invoke-Stage %s %s {\n%s}\n", powershell.Quote(s.name), boolean(s.required), part(s.file))
	if s.last {
		return "if ($swdtFailed.Count -eq 0) {\n" + run + "}\n"
	}
	return run
}

func boolean(value bool) string {
	if value {
		return "$true"
	}
	return "$false"
}

// part returns the content of a file of stages/. A test checks that each named file exists.
func part(name string) string {
	content, _ := parts.ReadFile("stages/" + name + ".ps1")
	return string(content)
}
