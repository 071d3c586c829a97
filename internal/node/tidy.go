package node

import (
	"context"
	"errors"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// tidyTime bounds what is nice to have.
const tidyTime = 15 * time.Second

// tidy follows an installation: agents of other versions are removed. That it
// fails is no reason not to use the agent.
func (n *Node) tidy(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tidyTime)
	defer cancel()
	if err := n.prune(ctx); err != nil {
		n.opts.Reporter.Debug("remove older agents: %v", err)
	}
}

// prune removes other agents, except one that the guardian needs. One that runs
// cannot be removed, which Windows sees to.
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

// guardianCommand is the command line of the registered guardian, in lower case.
func (n *Node) guardianCommand(ctx context.Context) (string, error) {
	reply, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: layout.GuardianService})
	if errors.Is(err, host.ErrNoService) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return strings.ToLower(reply.GetConfig().GetCommandLine()), nil
}
