package document

// RedactLarge redacts a document in groups of most bytes.
var RedactLarge = redactLarge
