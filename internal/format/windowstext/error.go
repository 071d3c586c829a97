package windowstext

import (
	"fmt"
	"slices"
)

// Remedy makes every program read a text file.
const Remedy = "save the file as UTF-8 without a byte order mark"

// Error reports a text file that its reader cannot read because of its encoding.
type Error struct {
	Encoding Encoding
	Line     int    // counted from 1
	What     string // follows the name of the encoding, such as "which sshd does not read"
	Err      error  // the reader's own error, or nil
}

// Problem returns the error without its line and its remedy.
func (e *Error) Problem() string {
	if e.Err != nil {
		return fmt.Sprintf("it is %s, %s (%v)", e.Encoding, e.What, e.Err)
	}
	return fmt.Sprintf("it is %s, %s", e.Encoding, e.What)
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s: %s", e.Line, e.Problem(), Remedy) }

func (e *Error) Unwrap() error { return e.Err }

// Refuse returns an *Error if a program cannot read a file of this encoding. accepted are the encodings that the
// program reads besides UTF-8.
func Refuse(file []byte, program string, accepted ...Encoding) error {
	is := Detect(file)
	if is == UTF8 || slices.Contains(accepted, is) {
		return nil
	}
	return &Error{Encoding: is, Line: 1, What: "which " + program + " does not read"}
}

// Explain returns the reason why a program refuses a file with err: an *Error if the file has another encoding than
// the program reads, or is no text, otherwise err. If err is nil, Explain returns nil.
func Explain(file []byte, program string, err error, accepted ...Encoding) error {
	if err == nil {
		return nil
	}
	text, problem := Decode(file)
	if refused := Refuse(file, program, accepted...); refused != nil {
		problem = refused
	} else if problem == nil && text.tail {
		problem = &Error{Encoding: text.Encoding, What: "with NUL characters after its text, which " + program +
			" does not read", Line: lineOf(text.Content, len(text.Content))}
	}
	if encoded, ok := problem.(*Error); ok {
		encoded.Err = err
		return encoded
	}
	return err
}

// ExplainYAML is Explain for a program that reads YAML with Go's parser, which reads all encodings with a mark.
func ExplainYAML(file []byte, program string, err error) error {
	return Explain(file, program, err, MarkedUTF8, UTF16LE, UTF16BE)
}
