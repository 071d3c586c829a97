package hcs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/maruel/natural"
)

// NotFoundError is a name that nothing has.
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no container or compute system %q; `swdt hcs list` shows them", e.Name)
}

// AmbiguousError is a name that several have.
type AmbiguousError struct {
	Name  string
	Found []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q may be any of %s: write more of it", e.Name, strings.Join(e.Found, ", "))
}

// FindOwner finds one by NAMESPACE/POD[/CONTAINER] or by the beginning of its ID.
// A pod of one running container is that container, where one is wanted.
func FindOwner(owners []Owner, name string, container bool) (Owner, error) {
	var found []Owner
	for _, o := range owners {
		switch {
		case container && o.Container == "": // nothing can be run in a sandbox
		case isID(o.ID, name), o.String() == name && (o.Running || !container), container && o.Pod == name && o.Running:
			found = append(found, o)
		}
	}
	return one(found, name, func(o Owner) string { return o.String() + " (" + Short(o.ID) + ")" })
}

// FindSystem finds one by the beginning of its ID. A pod's utility VM has that of
// its sandbox, which is meant where it is there.
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

func one[T any](found []T, name string, tell func(T) string) (only T, err error) {
	switch len(found) {
	case 0:
		return only, &NotFoundError{Name: name}
	case 1:
		return found[0], nil
	}
	var names []string
	for _, f := range found {
		names = append(names, tell(f))
	}
	slices.SortFunc(names, natural.Compare)
	return only, &AmbiguousError{Name: name, Found: names}
}

// Short is as much of an ID as crictl shows.
func Short(id string) string { return id[:min(13, len(id))] }
