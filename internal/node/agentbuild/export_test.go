package agentbuild

// Flags returns the flags of go build.
func (p Program) Flags() []string { return p.flags }
