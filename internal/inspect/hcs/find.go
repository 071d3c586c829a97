package hcs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/maruel/natural"
)

// NotFoundError reports a name that no container or compute system has.
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no container or compute system %q; `swdt hcs list` lists them", e.Name)
}

// AmbiguousError reports a name that fits several containers or compute systems.
type AmbiguousError struct {
	Name  string
	Found []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is ambiguous: it may be %s; write more of the name or ID",
		e.Name, strings.Join(e.Found, ", "))
}

// FindOwner finds a pod or container by NAMESPACE/POD[/CONTAINER] or by the beginning of the pod's
// or container's ID. If container is true, FindOwner finds only containers, and NAMESPACE/POD
// stands for the only running container of the pod.
func FindOwner(owners []Owner, name string, container bool) (Owner, error) {
	var found []Owner
	for _, o := range owners {
		switch {
		case container && o.Container == "": // a pod sandbox cannot run commands
		case isID(o.ID, name), o.String() == name && (o.Running || !container), container && o.Pod == name && o.Running:
			found = append(found, o)
		}
	}
	return one(found, name, func(o Owner) string { return o.String() + " (" + Short(o.ID) + ")" })
}

// FindSystem finds a compute system by the beginning of its ID. The ID of a pod's utility VM
// begins with the ID of its pod sandbox. If the pod sandbox is a compute system too,
// FindSystem finds the pod sandbox by that ID, not the VM.
func FindSystem(systems []System, name string) (System, error) {
	var found []System
	for _, s := range systems {
		if s.ID == name {
			return s, nil
		}
		sandbox, isVM := strings.CutSuffix(s.ID, vmSuffix)
		if isVM && slices.ContainsFunc(systems, func(other System) bool { return other.ID == sandbox }) {
			continue
		}
		if isID(s.ID, name) {
			found = append(found, s)
		}
	}
	return one(found, name, func(s System) string { return Short(s.ID) })
}

func isID(id, name string) bool {
	return name != "" && len(id) >= len(name) && strings.EqualFold(id[:len(name)], name)
}

// one returns the only element of found, or an error that describes all elements.
func one[T any](found []T, name string, describe func(T) string) (only T, err error) {
	switch len(found) {
	case 0:
		return only, &NotFoundError{Name: name}
	case 1:
		return found[0], nil
	}
	var names []string
	for _, f := range found {
		names = append(names, describe(f))
	}
	slices.SortFunc(names, natural.Compare)
	return only, &AmbiguousError{Name: name, Found: names}
}

// Short returns the first 13 characters of an ID, as crictl prints it.
func Short(id string) string { return id[:min(13, len(id))] }
