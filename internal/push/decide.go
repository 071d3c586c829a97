package push

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// change is the change that the push must make to a component.
type change int

const (
	changeNone    change = iota
	changeSkipped        // something differs, but must not be changed
	changeRestart        // same binary; its service is restarted
	changeBinary
	changeCreate
)

func (c change) changes() bool { return c >= changeRestart }

func (c change) action() Action {
	return [...]Action{ActionUnchanged, ActionSkipped, ActionRestarted, ActionReplaced, ActionCreated}[c]
}

// component is one binary in the course of a push.
type component struct {
	spec        v1alpha1.Provisioner
	binary      source.Binary
	state       *agentv1.ComponentState
	change      change
	commandLine string             // to register; empty: unchanged
	traces      tracerecord.Record // the changes that `swdt trace` made on the node
	staged      string             // path on the node; empty: nothing is staged
	sha256      string             // of the staged file
	joined      bool               // added by addJoined: it has no provisioner, so no source to compare with

	result  *ComponentResult
	err     error
	settled bool // the result's action is final
}

func newComponent(spec v1alpha1.Provisioner) *component {
	return &component{spec: spec, result: &ComponentResult{
		Name: spec.Name, Destination: spec.Destination, Version: Version{Wanted: spec.Version},
		Transfer: &transfer.Result{Method: transfer.MethodNone}, LogLines: []string{},
	}}
}

func (c *component) inspect() *agentv1.InspectComponent {
	return &agentv1.InspectComponent{
		Name: c.spec.Name, Destination: c.spec.Destination, Service: c.spec.Name, VersionArgs: c.versionArgs(),
	}
}

// versionArgs returns the arguments that make the binary report its version. An unknown
// binary might do anything, so it is only run if the node file wants a version.
func (c *component) versionArgs() []string {
	known := []string{"kubelet", "containerd", "kube-proxy"}
	if c.spec.Version == "" && !slices.Contains(known, strings.ToLower(c.spec.Name)) {
		return nil
	}
	return []string{"--version"}
}

// see records the state of the component on the node.
func (c *component) see(state *agentv1.ComponentState) {
	c.state = state
	c.result.PreviousSHA256 = state.GetSha256()
	c.result.Version.Before = state.GetVersion()
	if state.GetServiceExists() {
		c.result.Service = serviceOf(state.GetService())
	}
}

func (c *component) addMessage(message string) {
	if c.result.Message != "" {
		message = c.result.Message + "; " + message
	}
	c.result.Message = message
}

// decide compares the wanted state with the one on the node, and sets the change.
func (c *component) decide(force bool) error {
	if err := c.usable(); err != nil {
		return err
	}
	if err := c.decideCommandLine(); err != nil {
		return err
	}
	same := c.state.GetExists() && c.state.GetSha256() == c.binary.SHA256
	switch {
	case !c.state.GetExists():
		c.change = changeCreate
	case !same && c.spec.Overwrite != nil && !*c.spec.Overwrite:
		c.change = changeSkipped
		c.result.SHA256 = c.state.GetSha256()
		c.addMessage("the file on the node differs, and overwrite is false")
	case !same:
		c.change = changeBinary
	case c.commandLine != "":
		c.change = changeRestart
		c.addMessage("the service's arguments change")
	case c.state.GetOutdated():
		c.change = changeRestart
		c.addMessage("its process was older than the file")
	case force && c.state.GetServiceExists():
		c.change = changeRestart
	}
	if c.change == changeSkipped && c.state.GetOutdated() {
		c.addMessage("its process is older than that file, and is not restarted either")
	}
	if c.change.changes() && !c.state.GetServiceExists() {
		c.addMessage(fmt.Sprintf("there is no service %s: the file is placed and nothing is restarted", c.spec.Name))
	}
	return nil
}

// otherFile returns a hint if the push has no effect: either the component's service runs
// another file than the one at the destination, or a service of another name runs the
// component's file. Otherwise it returns "".
func (c *component) otherFile() string {
	if by := c.state.GetRunBy(); len(by) > 0 {
		return fmt.Sprintf("service %s runs this file; did you mean name: %s?", by[0], by[0])
	}
	if !c.state.GetServiceExists() {
		return ""
	}
	runs := sameNameElsewhere(c.state.GetServiceConfig().GetCommandLine(), c.spec.Destination)
	if runs == "" {
		return ""
	}
	return fmt.Sprintf("the service %s runs %s, not this file: correct destination, or register the service again",
		c.spec.Name, runs)
}

// usable returns an error if the destination cannot be replaced.
func (c *component) usable() error {
	if c.state.GetFolder() {
		file := path.Base(strings.ReplaceAll(c.binary.Path, `\`, "/"))
		return fmt.Errorf("%s is a folder on the node: destination must name the file, such as %s\\%s",
			c.spec.Destination, strings.TrimRight(c.spec.Destination, `\`), file)
	}
	if text := c.state.GetError(); text != "" {
		return fmt.Errorf("look at %s on the node: %s", c.spec.Destination, text)
	}
	return nil
}

func (c *component) decideCommandLine() error {
	c.commandLine = ""
	if c.spec.Args == nil || !c.state.GetServiceExists() {
		return nil
	}
	registered, traced := c.traces.CommandLine(c.spec.Name, c.state.GetServiceConfig().GetCommandLine())
	wanted, err := withArgs(registered, c.spec.Destination, c.spec.Args)
	if err != nil || wanted == registered {
		return err
	}
	if traced {
		return c.traces.Refuse(c.spec.Name, "its command line")
	}
	c.commandLine = wanted
	return nil
}

// swap returns the component's part of the transaction.
func (c *component) swap() *agentv1.SwapComponent {
	s := &agentv1.SwapComponent{
		Name: c.spec.Name, Destination: c.spec.Destination,
		Staged: c.staged, Sha256: c.sha256, PreviousSha256: c.state.GetSha256(),
		CommandLine: c.commandLine,
	}
	if !c.state.GetServiceExists() {
		return s
	}
	s.Service = c.spec.Name
	s.DependsOn = c.dependsOn()
	s.Health = &agentv1.Health{}
	h := c.spec.Health
	if h == nil {
		standard := v1alpha1.DefaultHealth(c.spec.Name)
		h = &standard
	}
	if !h.None {
		s.Health.HttpGet, s.Health.CriPipe = h.HTTPGet, h.CRIPipe
	}
	s.Health.Timeout = duration(h.Timeout)
	s.Settle, s.StopTimeout = duration(h.Settle), duration(h.StopTimeout)
	return s
}

func (c *component) dependsOn() []string {
	names := slices.Clone(c.spec.DependsOn)
	for _, name := range v1alpha1.DefaultDependsOn(c.spec.Name) {
		if !slices.ContainsFunc(names, func(given string) bool { return strings.EqualFold(given, name) }) {
			names = append(names, name)
		}
	}
	return names
}

// duration converts d. If d is nil, it returns nil, which means the agent's default.
func duration(d *v1alpha1.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(d.Duration)
}
