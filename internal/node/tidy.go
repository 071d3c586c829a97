package node

import (
	"context"
	"errors"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// tidyTime bounds tidy, whose work is optional.
const tidyTime = 15 * time.Second

// tidy removes the agents of other versions after an installation. A failure of tidy does
// not prevent the use of the new agent.
func (n *Node) tidy(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tidyTime)
	defer cancel()
	if err := n.prune(ctx); err != nil {
		n.opts.Reporter.Debug("remove older agents: %v", err)
	}
}

// prune removes other agents, except the guardian's. The guardian is the service that
// carries out a transaction even without a connection. Windows refuses to remove an agent
// that is running.
func (n *Node) prune(ctx context.Context) error {
	found, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: layout.Agents})
	if err != nil {
		return err
	}
	guardian, err := n.guardianCommand(ctx)
	if err != nil {
		return err
	}
	for _, each := range found.GetEntries() {
		name := each.GetPath()[strings.LastIndex(each.GetPath(), `\`)+1:]
		path := layout.Agents + `\` + name
		if !each.GetFolder() || each.GetLink() || strings.EqualFold(name, n.opts.Agent.Hash) ||
			strings.Contains(guardian, strings.ToLower(path)) {
			continue
		}
		if _, err := n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path, Recursive: true}); err != nil {
			n.opts.Reporter.Debug("remove the older agent %.12s: %v", name, err)
		}
	}
	return nil
}

// guardianCommand returns the command lines of the registered guardians, in lower case.
func (n *Node) guardianCommand(ctx context.Context) (commands string, err error) {
	for _, name := range layout.ServiceNames(layout.GuardianService) {
		reply, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: name})
		if err != nil && !errors.Is(err, fault.ErrNoService) {
			return "", err
		}
		commands += strings.ToLower(reply.GetConfig().GetCommandLine()) + "\n"
	}
	return commands, nil
}
