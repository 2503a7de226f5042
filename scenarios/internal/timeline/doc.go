// Package timeline tells in words what the records of a run say, one line each, in
// columns that diff well.
//
// timeline.go has the columns and what is left out because it says nothing new;
// words.go the words, by kind of record. A line says what changed, so each
// depends on those before it: Story is what they said.
package timeline
