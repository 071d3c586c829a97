package node

// UnreachableError is returned when a node could not be reached or trusted, or
// its agent could not be started. Err says why, and what helps.
type UnreachableError struct {
	Node string
	Err  error
}

func (e *UnreachableError) Error() string { return e.Node + ": " + e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

// LostError is returned by calls to a node whose connection has broken, or
// whose agent has died, since it was connected. Reconnect may help.
type LostError struct {
	Node   string
	Stderr string // the last of what the agent wrote to stderr
	Err    error
}

func (e *LostError) Error() string {
	text := e.Node + ": lost the connection to the node"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Stderr != "" {
		text += "; the agent's last words: " + e.Stderr
	}
	return text
}
func (e *LostError) Unwrap() error { return e.Err }
