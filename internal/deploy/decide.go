package deploy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/source"
	"github.com/swdt-dev/swdt/internal/trace/record"
	"github.com/swdt-dev/swdt/internal/transfer"
)

// change is what has to happen to a component.
type change int

const (
	changeNone    change = iota
	changeSkipped        // something differs and may not be touched
	changeRestart        // the same binary; its service is restarted
	changeBinary
	changeCreate
)

func (c change) changes() bool { return c >= changeRestart }

func (c change) action() Action {
	return [...]Action{ActionUnchanged, ActionSkipped, ActionRestarted, ActionReplaced, ActionCreated}[c]
}

// component is one binary on its way.
type component struct {
	spec        v1alpha1.Provisioner
	binary      source.Binary
	state       *agentv1.ComponentState
	change      change
	commandLine string        // to register; empty: as it is
	traces      record.Record // what swdt trace has changed on the node
	staged      string        // path on the node; empty: nothing is staged
	sha256      string        // of the staged file
	joined      bool          // no provisioner has it: there is no source to compare with

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

// versionArgs make the binary report its version. A binary that swdt does not
// know is only run when somebody wants to know its version: it might do
// anything.
func (c *component) versionArgs() []string {
	known := []string{"kubelet", "containerd", "kube-proxy"}
	if c.spec.Version == "" && !slices.Contains(known, strings.ToLower(c.spec.Name)) {
		return nil
	}
	return []string{"--version"}
}

// see takes in what stands on the node.
func (c *component) see(state *agentv1.ComponentState) {
	c.state = state
	c.result.PreviousSHA256 = state.GetSha256()
	c.result.Version.Before = state.GetVersion()
	if state.GetServiceExists() {
		c.result.Service = serviceOf(state.GetService())
	}
}

func (c *component) say(message string) {
	if c.result.Message != "" {
		message = c.result.Message + "; " + message
	}
	c.result.Message = message
}

// decide compares what is wanted with what is.
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
		c.say("a different file stands there and overwrite is false")
	case !same:
		c.change = changeBinary
	case c.commandLine != "":
		c.change = changeRestart
		c.say("the service's arguments change")
	case c.state.GetOutdated():
		c.change = changeRestart
		c.say("its process was older than the file")
	case force && c.state.GetServiceExists():
		c.change = changeRestart
	}
	if c.change == changeSkipped && c.state.GetOutdated() {
		c.say("its process is older than that file, and is left alone too")
	}
	if c.change.changes() && !c.state.GetServiceExists() {
		c.say(fmt.Sprintf("there is no service %s: the file is placed and nothing is restarted", c.spec.Name))
	}
	return nil
}

// otherFile returns a hint about a component whose service runs another file than
// the one at the destination, or whose file is run by a service of another name: it
// is then changed for nothing. "" if there is none.
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
	return fmt.Sprintf("the service %s runs %s, not this file: correct destination, or register the service anew", c.spec.Name, runs)
}

// usable refuses a destination that cannot be replaced.
func (c *component) usable() error {
	if c.state.GetFolder() {
		file := path.Base(strings.ReplaceAll(c.binary.Path, `\`, "/"))
		return fmt.Errorf("%s is a folder on the node: destination must name the file, such as %s\\%s", c.spec.Destination, strings.TrimRight(c.spec.Destination, `\`), file)
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

// swap is the component's part of the transaction.
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

// duration is nil, the agent's default, where none is given.
func duration(d *v1alpha1.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(d.Duration)
}
