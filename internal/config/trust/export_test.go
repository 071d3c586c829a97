package trust

import "slices"

// Lists returns the fields of all lists.
func Lists() []string { return slices.Concat(harmless(), onNode(), secret(), kubeconfigs()) }
