package cli

import (
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/proof/evidence"
	"github.com/swdt-dev/swdt/internal/proof/trial"
	"github.com/swdt-dev/swdt/internal/ui"
)

// e2eEvidence sets how evidence of failed specs is collected, and begins the progress output. It contacts
// nothing.
func (a *app) e2eEvidence(o *e2eOptions, options *trial.Options) (*ui.Story, error) {
	if o.noEvidence || a.global.dryRun {
		return a.newStory(), nil
	}
	options.Evidence = &evidence.Options{Redact: o.redact, Version: a.env.Version}
	s, err := a.optionalSession()
	switch {
	case err != nil && a.namesNodeFiles():
		return nil, err
	case err != nil: // a file that has nothing to do with this command, perhaps
		story := a.newStory()
		story.Node("").Warn("logs of nodes are read through the API server only, since no node file can be used: %v", err)
		return story, nil
	case s == nil:
		return a.newStory(), nil
	}
	s.options.Prompt = nil // a question would stop the run
	options.Evidence.Documents, options.Evidence.Connect = s.documents, s.connectAndClose
	return s.story, nil
}

// optionalSession returns a session with the nodes of the node files, for a command that also works without
// them; nil if no file is named, and there is none at the usual places.
func (a *app) optionalSession() (*session, error) {
	if _, err := config.DefaultSource(); err != nil && !a.namesNodeFiles() {
		return nil, nil
	}
	documents, err := a.documents()
	if err != nil {
		return nil, err
	}
	return a.sessionFor(documents)
}

// namesNodeFiles reports whether the user has named node files.
func (a *app) namesNodeFiles() bool {
	return len(a.global.config) > 0 || a.env.Getenv(configVariable) != ""
}
