package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// registryValues sets values of the registry, and restores those that the record lists.
type registryValues struct {
	node   *node.Node
	name   string
	wanted []registryValue
	// summary describes a change in place of the values' names; "": the names.
	summary string
}

// registryValue is a wanted value of the registry.
type registryValue struct {
	Key  string
	Name string
	content
}

// content is the type and the data of a value.
type content struct {
	Type    string   `json:"type,omitempty"`
	String  string   `json:"string,omitempty"`
	Strings []string `json:"strings,omitempty"`
	Integer uint64   `json:"integer,omitempty"`
	Binary  []byte   `json:"binary,omitempty"`
}

// valueRecord is a value that a step has set.
type valueRecord struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	// Before is the value before the step; nil: there was none. Set is the value that the step has set.
	Before *content `json:"before,omitempty"`
	Set    content  `json:"set"`
	// Earlier is the value that an earlier run has set, until this run has set Set; nil: there is none.
	Earlier *content `json:"earlier,omitempty"`
	// Made is the highest key that the step had to make; "": none.
	Made string `json:"made,omitempty"`
}

func registryOf(n *node.Node, values []v1alpha1.RegistryValue) *registryValues {
	s := &registryValues{node: n, name: "registry"}
	for _, value := range values {
		wanted := registryValue{Key: value.Key, Name: value.Name}
		if value.DWord != nil {
			wanted.content = dword(uint64(*value.DWord))
		} else if value.String != nil {
			wanted.content = content{Type: string(platform.RegistryString), String: *value.String}
		}
		s.wanted = append(s.wanted, wanted)
	}
	return s
}

func dword(value uint64) content {
	return content{Type: string(platform.RegistryDWord), Integer: value}
}

// windowsUpdate sets the policy by which Windows installs updates. AUOptions 2 is "notify before download"; both values
// are those of image-builder and AgentBaker
// (learn.microsoft.com/windows/deployment/update/waas-wu-settings, images/capi/ansible/windows/roles/systemprep).
func windowsUpdate(n *node.Node, automatic bool) *registryValues {
	s := &registryValues{node: n, name: "Windows Update", summary: "turn automatic updates " + onOff(automatic)}
	set := func(name string, value uint64) {
		s.wanted = append(s.wanted, registryValue{v1alpha1.UpdatePolicyKey, name, dword(value)})
	}
	if automatic {
		set("NoAutoUpdate", 0)
		set("AUOptions", 4) // download and install by the schedule
	} else {
		set("NoAutoUpdate", 1)
		set("AUOptions", 2)
	}
	return s
}

func (s *registryValues) Name() string { return s.name }

func (s *registryValues) Plan(ctx context.Context) (plan.Change, error) {
	differing, err := s.differing(ctx)
	if err != nil || len(differing) == 0 {
		return plan.Change{}, err
	}
	if s.summary != "" {
		return plan.Change{Needed: true, Summary: s.summary}, nil
	}
	var parts, details []string
	for _, value := range differing {
		parts = append(parts, value.Name+" = "+value.text())
		details = append(details, value.Key+`\`+value.Name+" = "+value.text())
	}
	return plan.Change{Needed: true, Summary: "set " + strings.Join(parts, ", "), Detail: strings.Join(details, ", ")}, nil
}

func (s *registryValues) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	differing, err := s.differing(ctx)
	if err != nil {
		return plan.Outcome{}, err
	}
	if err := s.note(ctx, differing); err != nil {
		return plan.Outcome{}, err
	}
	for _, value := range differing {
		if err := value.content.writeTo(ctx, s.node, value.Key, value.Name); err != nil {
			return plan.Outcome{}, err
		}
	}
	return plan.Outcome{}, s.written(ctx)
}

// note records values before they change. A recorded value stays as it was before the first change.
func (s *registryValues) note(ctx context.Context, values []registryValue) error {
	r, err := load(ctx, s.node)
	if err != nil {
		return err
	}
	for _, value := range values {
		if i := r.value(value.Key, value.Name); i >= 0 {
			if err := r.Registry[i].setNext(ctx, s.node, value.content); err != nil {
				return err
			}
			continue
		}
		entry := valueRecord{Key: value.Key, Name: value.Name, Set: value.content}
		if entry.Before, err = read(ctx, s.node, value.Key, value.Name); err != nil {
			return err
		}
		if entry.Made, err = missingKey(ctx, s.node, value.Key); err != nil {
			return err
		}
		r.Registry = append(r.Registry, entry)
	}
	return r.save(ctx, s.node)
}

// setNext records another value to set. The machine may keep the present one, if the change does not happen.
func (v *valueRecord) setNext(ctx context.Context, n *node.Node, next content) error {
	is, err := read(ctx, n, v.Key, v.Name)
	if err != nil {
		return err
	}
	if is != nil && is.equal(v.Set) {
		v.Earlier = is
	}
	v.Set = next
	return nil
}

// written records that the machine has all wanted values, so that it has none of an earlier run any more.
func (s *registryValues) written(ctx context.Context) error {
	r, err := load(ctx, s.node)
	if err != nil {
		return err
	}
	changed := false
	for _, value := range s.wanted {
		if i := r.value(value.Key, value.Name); i >= 0 && r.Registry[i].Earlier != nil {
			r.Registry[i].Earlier, changed = nil, true
		}
	}
	if !changed {
		return nil
	}
	return r.save(ctx, s.node)
}

// differing returns the wanted values that the machine does not have.
func (s *registryValues) differing(ctx context.Context) (all []registryValue, err error) {
	for _, value := range s.wanted {
		is, err := read(ctx, s.node, value.Key, value.Name)
		if err != nil {
			return nil, err
		}
		if is == nil || !is.equal(value.content) {
			all = append(all, value)
		}
	}
	return all, nil
}

// PlanUndo finds the recorded values. A value that was changed since stays.
func (s *registryValues) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil || len(r.Registry) == 0 {
		return plan.Change{}, err
	}
	var names []string
	for _, value := range r.Registry {
		names = append(names, value.Name)
	}
	return plan.Change{Needed: true, Summary: "restore " + strings.Join(names, ", ")}, nil
}

func (s *registryValues) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	var kept []string
	for _, value := range slices.Backward(r.Registry) {
		restored, err := value.restore(ctx, s.node)
		if err != nil {
			return plan.Outcome{}, err
		}
		if !restored {
			kept = append(kept, value.Key+`\`+value.Name)
		}
	}
	outcome, err := undone(ctx, s.node, func(r *record) { r.Registry = nil })
	if len(kept) > 0 {
		outcome.Message = "kept, since they were changed after `swdt setup`: " + strings.Join(kept, ", ")
	}
	return outcome, err
}

// restore gives a value back what it was before. It returns false if the value was changed since.
func (v valueRecord) restore(ctx context.Context, n *node.Node) (bool, error) {
	is, err := read(ctx, n, v.Key, v.Name)
	if err != nil {
		return false, err
	}
	switch {
	case !v.has(is):
		// It was changed since, or restored by an undo that was interrupted.
		if same := is == nil && v.Before == nil || is != nil && v.Before != nil && is.equal(*v.Before); !same {
			return false, nil
		}
	case v.Before != nil:
		return true, v.Before.writeTo(ctx, n, v.Key, v.Name)
	default:
		_, err := n.Registry.Delete(ctx, &agentv1.RegistryDeleteRequest{Key: v.Key, Name: v.Name})
		if err != nil && !errors.Is(err, fault.ErrNotExist) {
			return false, fmt.Errorf("remove %s\\%s: %w", v.Key, v.Name, err)
		}
	}
	return true, v.removeKeys(ctx, n)
}

// has reports whether a value is one that the step has set.
func (v valueRecord) has(is *content) bool {
	return is != nil && (is.equal(v.Set) || v.Earlier != nil && is.equal(*v.Earlier))
}

// removeKeys removes the keys that the step has made and that are empty.
func (v valueRecord) removeKeys(ctx context.Context, n *node.Node) error {
	for key := v.Key; v.Made != "" && len(key) >= len(v.Made); key = parentKey(key) {
		is, err := n.Registry.List(ctx, &agentv1.RegistryListRequest{Key: key})
		switch {
		case errors.Is(err, fault.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("list %s: %w", key, err)
		case len(is.GetValues())+len(is.GetKeys()) > 0:
			return nil
		}
		if _, err := n.Registry.Delete(ctx, &agentv1.RegistryDeleteRequest{Key: key, WholeKey: true}); err != nil {
			return fmt.Errorf("remove the empty key %s: %w", key, err)
		}
	}
	return nil
}

// missingKey returns the highest key of the path to key that does not exist; "" if all exist.
func missingKey(ctx context.Context, n *node.Node, key string) (missing string, err error) {
	for strings.Contains(key, `\`) {
		_, err := n.Registry.List(ctx, &agentv1.RegistryListRequest{Key: key})
		switch {
		case err == nil:
			return missing, nil
		case !errors.Is(err, fault.ErrNotExist):
			return "", fmt.Errorf("look for the key %s: %w", key, err)
		}
		missing, key = key, parentKey(key)
	}
	return missing, nil
}

func parentKey(key string) string { return key[:max(0, strings.LastIndexByte(key, '\\'))] }

func (r record) value(key, name string) int {
	return slices.IndexFunc(r.Registry, func(v valueRecord) bool {
		return strings.EqualFold(v.Key, key) && strings.EqualFold(v.Name, name)
	})
}

// read returns a value; nil if there is none.
func read(ctx context.Context, n *node.Node, key, name string) (*content, error) {
	is, err := n.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: key, Name: name})
	switch {
	case errors.Is(err, fault.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s\\%s: %w", key, name, err)
	}
	return &content{is.GetType(), is.GetString_(), is.GetStrings(), is.GetInteger(), is.GetBinary()}, nil
}

func (c content) writeTo(ctx context.Context, n *node.Node, key, name string) error {
	_, err := n.Registry.Set(ctx, &agentv1.RegistrySetRequest{Key: key, Value: &agentv1.RegistryValue{
		Name: name, Type: c.Type, String_: c.String, Strings: c.Strings, Integer: c.Integer, Binary: c.Binary,
	}})
	if err != nil {
		return fmt.Errorf("set %s\\%s: %w", key, name, err)
	}
	return nil
}

func (c content) equal(other content) bool {
	return c.Type == other.Type && c.String == other.String && slices.Equal(c.Strings, other.Strings) &&
		c.Integer == other.Integer && slices.Equal(c.Binary, other.Binary)
}

func (c content) text() string {
	if c.Type == string(platform.RegistryDWord) {
		return fmt.Sprint(c.Integer)
	}
	return fmt.Sprintf("%q", c.String)
}
