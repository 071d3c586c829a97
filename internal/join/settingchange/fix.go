package settingchange

import (
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
)

// Strip returns a text of a program without settings. Other bytes stay, and if another setting would change, it is an
// *OtherSettingError.
func Strip(text nodesettings.Text, removals []Wish, table *kubesettings.Table) ([]byte, error) {
	texts := nodesettings.Texts{All: []nodesettings.Text{text}}
	s := &Settings{Program: text.Program, table: table, texts: texts, facts: factsOf(texts, text.Program, table)}
	p, err := s.Plan(removals)
	if err != nil {
		return nil, err
	}
	return p.drafts[0].after, nil
}

// WithoutGate returns the value of --feature-gates without a gate. keep is false if none is left.
func WithoutGate(gates, name string) (changed string, keep bool) { return withGate(gates, name, "") }
