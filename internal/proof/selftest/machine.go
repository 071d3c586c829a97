package selftest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// tryFacts asks for the node's facts twice, and compares the answers.
func tryFacts(ctx context.Context, t *trial) error {
	one, err := t.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return err
	}
	two, err := t.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return err
	}
	t.answer("architecture", one.GetArchitecture())
	t.answer("elevated", one.GetElevated())
	t.answer("system drive", one.GetSystemDrive())
	t.answer("boot id is a number", regexp.MustCompile(`^\d+$`).MatchString(one.GetBootId()))
	switch {
	case !regexp.MustCompile(`^\d+(\.\d+)*$`).MatchString(one.GetBuild()):
		return fmt.Errorf("the build is %q, not a number such as 20348.2849", one.GetBuild())
	case one.GetBootId() == "":
		return errors.New("the node reports no boot id")
	case one.GetCpus() < 1 || one.GetMemoryBytes() == 0:
		return fmt.Errorf("the node reports %d processors and %d bytes of memory", one.GetCpus(), one.GetMemoryBytes())
	case two.GetUptime().AsDuration() < one.GetUptime().AsDuration():
		return errors.New("the uptime went back between two questions")
	case !one.GetElevated():
		return errors.New("the agent has no administrator's rights")
	}
	return expect("the boot id of the second answer", two.GetBootId(), one.GetBootId())
}

// tryAccount asks Windows' own programs who and where the agent is.
func tryAccount(ctx context.Context, t *trial) error {
	facts, err := t.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return err
	}
	name, err := t.run(ctx, "", "hostname")
	if errors.Is(err, fault.ErrNotExist) {
		return impossible("the node has no program hostname")
	}
	if err != nil {
		return err
	}
	if !strings.EqualFold(strings.TrimSpace(name.stdout), facts.GetHostname()) {
		// Neither is quoted: the report's redactor does not know what hostname prints.
		return errors.New("hostname prints another name than the facts have")
	}
	account, err := t.run(ctx, "", "whoami")
	if errors.Is(err, fault.ErrNotExist) {
		return impossible("the node has no program whoami")
	}
	if err != nil {
		return err
	}
	text := strings.ToLower(strings.TrimSpace(account.stdout))
	t.answer("runs as SYSTEM", strings.HasSuffix(text, `\system`))
	if text == "" {
		return errors.New("whoami prints nothing")
	}
	return expect("the exit code of whoami", account.code, 0)
}

// tryAgent looks at the agent's file and at the access list of the folder that holds it.
func tryAgent(ctx context.Context, t *trial) error {
	hash, err := t.node.Files.Hash(ctx, &agentv1.HashRequest{Path: layout.Agent(t.agent.Hash)})
	if err != nil {
		return err
	}
	if err := expect("the agent's SHA-256 on the node", hash.GetSha256(), t.agent.Hash); err != nil {
		return err
	}
	root, err := t.accessList(ctx, "root", layout.Root)
	if err != nil {
		return err
	}
	only, err := smallfile.Restricted(ctx, t.node, layout.Root)
	if err != nil {
		return err
	}
	if !only {
		return fmt.Errorf("the access list of %s lets more than SYSTEM and Administrators in: %s", layout.Root, root)
	}
	list, err := t.accessList(ctx, "agent's folder", layout.Agents)
	if err != nil {
		return err
	}
	facts, err := t.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil || facts.GetSimulated() == agentv1.Simulation_SIMULATION_WINE { // Wine keeps no access lists
		return err
	}
	if accounts := access.OrdinaryChangers(list); len(accounts) > 0 {
		return fmt.Errorf("the access list of %s lets %v change it: %s", layout.Agents, accounts, list)
	}
	return nil
}

// accessList reads and records an access list.
func (t *trial) accessList(ctx context.Context, name, path string) (string, error) {
	list, err := t.node.Files.GetACL(ctx, &agentv1.GetACLRequest{Path: path})
	if err == nil {
		t.answer("access list of the "+name, list.GetSddl())
	}
	return list.GetSddl(), err
}

const defaultShell = "default shell"

// tryShell looks which shell OpenSSH starts. Its answer matters for comparisons alone: no command line
// of swdt depends on the shell.
func tryShell(ctx context.Context, t *trial) error {
	value, err := t.node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: `HKLM\SOFTWARE\OpenSSH`,
		Name: "DefaultShell"})
	if errors.Is(err, fault.ErrNotExist) {
		t.answer(defaultShell, "not set")
		return nil
	}
	if err != nil {
		return err
	}
	path := strings.ToLower(value.GetString_())
	t.answer(defaultShell, path[strings.LastIndexByte(path, '\\')+1:])
	if path == "" {
		return fmt.Errorf("the registry value DefaultShell is empty, a %s", value.GetType())
	}
	_, err = t.node.Files.Stat(ctx, &agentv1.StatRequest{Path: value.GetString_()})
	if errors.Is(err, fault.ErrNotExist) {
		return errors.New("the default shell of OpenSSH does not exist")
	}
	return err
}
