package finding

// Where names the side that has a problem: the node, the cluster or your machine.
type Where string

const (
	OnNode    Where = "node"
	OnCluster Where = "cluster"
	OnMachine Where = "machine" // yours
)

// Problem is a finding of a check before a join, or before a VM is made.
type Problem struct {
	Check    string   `json:"check"`
	Where    Where    `json:"where"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Remedy   string   `json:"remedy"`
	Evidence string   `json:"evidence"` // the observed facts
	// Ignored reports whether the node file has made the error a warning.
	Ignored bool `json:"ignored"`
}
