package cluster

import (
	"errors"
	"fmt"
	"strings"
)

// Machine is a machine that is about to change, with the facts that the machine itself
// reports.
type Machine struct {
	Node string // the name of the machine's Node object
	UUID string // the machine's system UUID; "" if the machine does not report one
}

// check returns an *OtherMachineError if n is known to be the Node of another machine.
func (m Machine) check(n Node) error {
	if same, known := SameMachine(m.UUID, n.SystemUUID); known && !same {
		return &OtherMachineError{Node: m.Node, UUID: n.SystemUUID, Machine: m.UUID}
	}
	return nil
}

// OtherMachineError reports that the Node with the machine's name belongs to another machine. The
// remedy depends on the command, so each command adds a remedy with RemedyOtherMachine.
type OtherMachineError struct{ Node, UUID, Machine string }

func (e *OtherMachineError) Error() string {
	return fmt.Sprintf("the cluster's node %s is a different machine from this one "+
		"(system UUID %s, not %s), and is not drained",
		e.Node, e.UUID, e.Machine)
}

// RemedyOtherMachine adds a remedy to an error that is an *OtherMachineError, and returns any other
// error as it is.
func RemedyOtherMachine(err error, remedy string) error {
	var other *OtherMachineError
	if !errors.As(err, &other) {
		return err
	}
	return fmt.Errorf("%w: %s", err, remedy)
}

// SameMachine compares the system UUIDs of two machines, such as the UUID that a node
// reports and the UUID in a Node object. known reports whether both UUIDs are
// available. If known is false, same is false too.
func SameMachine(a, b string) (same, known bool) {
	known = a != "" && b != ""
	return known && strings.EqualFold(a, b), known
}
