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

// prune removes other agents, except those of swdt's services: the guardian, which carries out a transaction even
// without a connection, and the owner of a capture. A service that does not run may start at any time, and needs
// its agent then. Windows refuses to remove an agent that is running.
func (n *Node) prune(ctx context.Context) error {
	found, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: layout.Agents})
	if err != nil {
		return err
	}
	var commands string
	for _, service := range append(layout.ServiceNames(layout.GuardianService),
		layout.ServiceNames(layout.CaptureService)...) {
		command, err := n.commandOf(ctx, service)
		if err != nil {
			return err
		}
		commands += command + "\n"
	}
	for _, each := range found.GetEntries() {
		name := each.GetPath()[strings.LastIndex(each.GetPath(), `\`)+1:]
		path := layout.Agents + `\` + name
		if !each.GetFolder() || each.GetLink() || strings.EqualFold(name, n.opts.Agent.Hash) ||
			strings.Contains(commands, strings.ToLower(path)) {
			continue
		}
		if _, err := n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path, Recursive: true}); err != nil {
			n.opts.Reporter.Debug("remove the older agent %.12s: %v", name, err)
		}
	}
	return nil
}

// commandOf returns the command line of a service in lower case; "" if there is no such service.
func (n *Node) commandOf(ctx context.Context, service string) (string, error) {
	reply, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: service})
	if errors.Is(err, fault.ErrNoService) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return strings.ToLower(reply.GetConfig().GetCommandLine()), nil
}
