package fleet

// Outcome has the fields that every node's result has. The node types of reports embed Outcome as
// their first field.
type Outcome struct {
	Name string `json:"name"`
	// Result is one word; "failed" if Error is not empty.
	Result string `json:"result"`
	// Error is the reason why the command failed on the node; "" if the command did not fail.
	Error string `json:"error"`
}

// These are the values of Outcome.Result that several commands use.
const (
	OK        = "ok"
	Changed   = "changed"
	Unchanged = "unchanged"
	Failed    = "failed"
)

// NewOutcome returns the outcome of a node: Failed with err's text or, if err is nil, the
// given result.
func NewOutcome(name, result string, err error) Outcome {
	if err != nil {
		return Outcome{Name: name, Result: Failed, Error: err.Error()}
	}
	return Outcome{Name: name, Result: result}
}

// Outcome returns the outcome of the node: OK unless the work failed.
func (r Result[T]) Outcome() Outcome { return NewOutcome(r.Name(), OK, r.Err) }
