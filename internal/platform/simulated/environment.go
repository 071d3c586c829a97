package simulated

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// servicesKey has a key for each service.
const servicesKey = `HKLM\SYSTEM\CurrentControlSet\Services\`

// machineEnvironment returns the machine's variables as they are in the registry now, each as NAME=value; the caller
// holds the lock.
func (m *Machine) machineEnvironment() []string {
	k, err := m.registry.find(environmentKey)
	if err != nil {
		return nil
	}
	var all []string
	for _, name := range sortedKeys(k.values) {
		value := k.values[name]
		all = append(all, value.Name+"="+m.expand(value.String))
	}
	return all
}

// serviceEnvironment returns the environment of a service's next process; the caller holds the lock. A service inherits
// the machine's variables that services.exe has read at boot: one that was changed since reaches it only after a restart
// of Windows (Microsoft's KB 821761; microsoft/openjdk#627; the reboot annotation of openshift/windows-machine-config-operator
// in pkg/daemon/controller). The value Environment of the service's own key, a REG_MULTI_SZ, is read at each start and
// merged into it (README of nssm 2.25, "Merged service environment", git.iain.cx/nssm.git 61e71854).
func (m *Machine) serviceEnvironment(name string) []string {
	k, err := m.registry.find(servicesKey + name)
	if err != nil {
		return m.boot.environment
	}
	return merge(m.boot.environment, k.values["environment"].Strings)
}

// merge returns the variables with those of added, which replace variables of the same name: names ignore case.
func merge(variables, added []string) []string {
	all := slices.Clone(variables)
	for _, pair := range added {
		name, _, _ := strings.Cut(pair, "=")
		all = append(slices.DeleteFunc(all, func(other string) bool {
			otherName, _, _ := strings.Cut(other, "=")
			return strings.EqualFold(otherName, name)
		}), pair)
	}
	return all
}

func (v processesView) Environment(ctx context.Context, pid uint32) ([]string, error) {
	if err := v.p.checkContext(ctx); err != nil {
		return nil, err
	}
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	p := v.p.m.processes[pid]
	if p == nil {
		return nil, fmt.Errorf("read the environment of process %d: %w", pid, fault.ErrNotExist)
	}
	return slices.Clone(p.environment), nil
}

// ServiceEnvironment returns the environment of the process of a running service, each variable as NAME=value.
func (m *Machine) ServiceEnvironment(name string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.services[fold(name)]; s != nil && s.process != nil {
		return slices.Clone(s.process.environment)
	}
	return nil
}
