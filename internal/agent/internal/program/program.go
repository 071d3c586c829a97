// Package program finds the programs that the machine's services run, behind their wrappers.
package program

import (
	"io"
	"os"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/settings"
	"github.com/swdt-dev/swdt/internal/format/wrapper"
	"github.com/swdt-dev/swdt/internal/platform"
)

// Of returns the program that a service with this registration runs.
func Of(p *platform.Platform, service platform.ServiceConfig) wrapper.Command {
	return wrapper.Look(service.Name, service.CommandLine, machine{p})
}

// Message returns the message of a program.
func Message(c wrapper.Command) *agentv1.ServiceProgram {
	return &agentv1.ServiceProgram{CommandLine: c.Line, Wrappers: c.Wrappers, Unknown: c.Unknown, Logs: c.Logs}
}

// machine answers the questions of wrappers about this machine.
type machine struct{ platform *platform.Platform }

const services = `HKLM\SYSTEM\CurrentControlSet\Services\`

func (m machine) Parameter(service, name string) (string, bool) {
	value, err := m.platform.Registry.Get(services+service+`\Parameters`, name)
	return value.String, err == nil
}

func (m machine) Texts(service, name string) []string {
	key, value := services+service, name
	if below, ok := strings.CutPrefix(name, `Parameters\`); ok {
		key, value = key+`\Parameters`, below
	}
	found, err := m.platform.Registry.Get(key, value)
	if err != nil {
		return nil
	}
	return found.Strings
}

func (m machine) Exists(path string) bool {
	info, err := m.platform.Files.Stat(path)
	return err == nil && !info.Folder
}

// ofEveryMachine are the variables that Windows sets for each process, and that the registry's
// environment of the machine lacks.
func ofEveryMachine() []string {
	return []string{"SystemRoot", "SystemDrive", "ProgramFiles", "ProgramFiles(x86)", "ProgramData"}
}

func (m machine) Variable(name string) (string, bool) {
	if value, err := m.platform.Registry.Get(settings.EnvironmentKey, name); err == nil {
		return value.String, true
	}
	if !slices.ContainsFunc(ofEveryMachine(), func(known string) bool { return strings.EqualFold(known, name) }) {
		return "", false
	}
	return os.LookupEnv(name)
}

// most is the largest script or configuration of a wrapper that is read, in bytes.
const most = 256 << 10

func (m machine) ReadFile(path string) ([]byte, bool) {
	f, err := m.platform.Files.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most))
	return content, err == nil
}
