package evidence

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Options configure the evidence of a command.
type Options struct {
	// Redact are the user's patterns of texts to redact, see package redact.
	Redact []string
	// Documents are the node files of the cluster's nodes. The logs of a node without a document are read
	// through the API server.
	Documents []config.Document
	// Connect connects to the node of a document; hangUp closes the connection.
	Connect func(context.Context, config.Document, ui.Reporter) (n *node.Node, hangUp func(), err error)
	Version string // of swdt, for the diagnostics of nodes
}

// Bundle is the evidence of one failure of a spec.
type Bundle struct {
	Run int `json:"run"` // counts from 1
	// Folder has the files of the bundle. Its path is relative to the folder of the results, with slashes;
	// "" if nothing was written.
	Folder string   `json:"folder"`
	Files  []string `json:"files"` // their paths, relative to Folder, with slashes
	// Causes are likely causes of the failure, the most likely first.
	Causes []string `json:"causes"`
	// Missing lists what the bundle lacks, with the reasons.
	Missing []string `json:"missing"`
}

// SummaryName is the name of the file of a bundle that people read first.
const SummaryName = "evidence.txt"

// Bounds of the records of one run, which are in memory.
const (
	maxRecords    = 48 << 20 // bytes of all namespaces, roughly
	maxNamespaces = 2000     // namespaces with records
	maxWatched    = 30       // namespaces that are watched at a time
	maxPods       = 200      // of one namespace
	maxEvents     = 2000     // of one namespace
	maxChanges    = 50       // of one pod or node, the last ones
	maxNodes      = 500
	maxOutput     = 64 << 10 // bytes of the output of one container, the last ones
	maxRead       = 16 << 20 // bytes of the output of one container that are read
	maxFollowed   = 40       // containers whose output is followed at a time
	maxText       = 1000     // bytes of a message of an event or state
	maxGaps       = 20       // times at which something could not be watched
)

// Bounds of the bundles of one run, which are on disk.
const (
	maxBundles   = 50
	maxDisk      = 128 << 20 // bytes of all bundles; beyond it, a bundle has no logs of nodes
	maxSlice     = 1 << 20   // bytes of the logs of one node in one bundle, the last ones
	maxInvolved  = 4         // nodes of one bundle
	maxDiagnosed = 4         // nodes whose diagnostics are gathered
	maxCauses    = 6
	maxCause     = 300 // bytes
)

// Times.
const (
	// margin is how much longer than the spec the slice of a node's logs is, at both ends, since clocks
	// differ.
	margin = 15 * time.Second
	// sliceLimit bounds the reading of the logs of one node for one bundle.
	sliceLimit = 30 * time.Second
	// nodesLimit bounds the reading of all logs of nodes after one run.
	nodesLimit = 3 * time.Minute
	// diagnosisLimit bounds the diagnostics of all nodes after one run.
	diagnosisLimit = 90 * time.Second
	// identifyLimit bounds the wait for the ID of a run in its output.
	identifyLimit    = 5 * time.Minute
	identifyInterval = 100 * time.Millisecond
	// maxLate is how long after the end of a spec its namespaces may become known.
	maxLate = 2 * time.Second
	// listLimit bounds a request for a part of a list, watchLimit one watch, which is then begun again.
	listLimit  = 15 * time.Second
	watchLimit = 4 * time.Minute
	// relist is the pause before a watch that has ended is begun again.
	relist = 500 * time.Millisecond
	// afterlife is how long the pods of a namespace that is gone are still watched, since their last
	// changes arrive in watches of their own.
	afterlife = time.Second
)
