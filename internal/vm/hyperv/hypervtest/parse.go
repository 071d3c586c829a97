package hypervtest

import (
	"fmt"
	"strconv"
	"strings"
)

// statement is a parsed line: an optional variable, and the cmdlets of a pipeline.
type statement struct {
	variable string
	pipeline []call
}

// call is a parsed cmdlet with its parameters. A switch parameter has the value true, or false if
// the script has :$false after the parameter's name.
type call struct {
	name   string
	params map[string]any
}

// The values of parameters, besides string, int64 and bool.
type (
	variable string
	result   []call // in parentheses
	list     []call // in @( )
	table    map[string]any
	// property is a property that Select-Object computes.
	property struct{ name, expression string }
)

// parser reads the part of PowerShell's language that package powershell writes.
type parser struct{ rest string }

// parse reads a script.
func parse(script string) (all []statement, err error) {
	p := &parser{script}
	for p.rest != "" {
		s, err := p.statement()
		if err != nil {
			return nil, fmt.Errorf("%w before %.60q", err, p.rest)
		}
		all = append(all, s)
		if p.rest != "" && !p.take("\n") {
			return nil, fmt.Errorf("no end of the statement before %.60q", p.rest)
		}
	}
	return all, nil
}

// take removes a token from the beginning of the rest, and reports whether the rest began with the
// token.
func (p *parser) take(token string) bool {
	rest, found := strings.CutPrefix(p.rest, token)
	if found {
		p.rest = rest
	}
	return found
}

// word removes a word from the beginning of the rest and returns it. The word is as long as
// possible, and consists of letters, digits and the characters in the string others.
func (p *parser) word(others string) string {
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(others, r)
	})
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

func (p *parser) statement() (s statement, err error) {
	if p.take("$") {
		s.variable = p.word("")
		if !p.take(" = ") {
			return s, fmt.Errorf("no assignment")
		}
	}
	s.pipeline, err = p.pipeline()
	return s, err
}

func (p *parser) pipeline() (all []call, err error) {
	for {
		c, err := p.call()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
		if !p.take(" | ") {
			return all, nil
		}
	}
}

func (p *parser) call() (c call, err error) {
	c = call{name: p.word(`-\.`), params: map[string]any{}}
	if c.name == "" {
		return c, fmt.Errorf("no cmdlet")
	}
	for p.take(" -") {
		name := p.word("")
		if _, twice := c.params[name]; twice || name == "" {
			return c, fmt.Errorf("no parameter, or the second -%s", name)
		}
		switch {
		case p.take(":$false"):
			c.params[name] = false
			continue
		case !strings.HasPrefix(p.rest, " ") || strings.HasPrefix(p.rest, " | ") || isSwitch(p.rest):
			c.params[name] = true
			continue
		}
		p.take(" ")
		if c.params[name], err = p.value(); err != nil {
			return c, fmt.Errorf("-%s: %w", name, err)
		}
	}
	return c, nil
}

// isSwitch reports whether another parameter follows, so that the parameter before it is a switch.
// A minus and a digit begin a number, not a parameter.
func isSwitch(rest string) bool {
	return strings.HasPrefix(rest, " -") && len(rest) > 2 && (rest[2] < '0' || rest[2] > '9')
}

func (p *parser) value() (any, error) {
	switch {
	case p.take("'"):
		return p.text()
	case p.take("$true"):
		return true, nil
	case p.take("$false"):
		return false, nil
	case p.take("$"):
		return variable(p.word("")), nil
	case strings.HasPrefix(p.rest, "@{Name='"):
		return p.properties()
	case p.take("@{"):
		return p.table()
	case p.take("@("):
		pipeline, err := p.closed()
		return list(pipeline), err
	case p.take("("):
		pipeline, err := p.closed()
		return result(pipeline), err
	case p.take("[byte[]]@("):
		return p.bytes()
	case p.take("[uint16]"):
		return p.number()
	}
	return p.number()
}

// text reads the rest of a string in single quotes, as PowerShell's tokenizer does.
func (p *parser) text() (string, error) {
	const quotes = "'\u2018\u2019\u201a\u201b"
	var b strings.Builder
	runes := []rune(p.rest)
	for i := 0; i < len(runes); i++ {
		if strings.ContainsRune(quotes, runes[i]) {
			if i+1 >= len(runes) || !strings.ContainsRune(quotes, runes[i+1]) {
				p.rest = string(runes[i+1:])
				return b.String(), nil
			}
			i++
		}
		b.WriteRune(runes[i])
	}
	return "", fmt.Errorf("a string without an end")
}

func (p *parser) closed() ([]call, error) {
	pipeline, err := p.pipeline()
	if err == nil && !p.take(")") {
		err = fmt.Errorf("no )")
	}
	return pipeline, err
}

func (p *parser) number() (int64, error) { return strconv.ParseInt(p.word("-"), 10, 64) }

func (p *parser) bytes() (all []byte, err error) {
	for !p.take(")") {
		n, err := strconv.ParseUint(p.word(""), 10, 8)
		if err != nil {
			return nil, err
		}
		all = append(all, byte(n))
		p.take(",")
	}
	return all, nil
}

func (p *parser) table() (table, error) {
	t := table{}
	for !p.take("}") {
		name := p.word("")
		if !p.take("=") {
			return nil, fmt.Errorf("no value of %s", name)
		}
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		t[name] = value
		p.take(";")
	}
	return t, nil
}

func (p *parser) properties() (all []property, err error) {
	for p.take("@{Name='") {
		name := p.word("")
		expression, rest, found := strings.Cut(strings.TrimPrefix(p.rest, "';Expression={"), "}}")
		if !found || !strings.HasPrefix(p.rest, "';Expression={") {
			return nil, fmt.Errorf("no expression of %s", name)
		}
		p.rest = rest
		all = append(all, property{name, expression})
		p.take(",")
	}
	return all, nil
}
