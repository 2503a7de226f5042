// Package charts runs charts of Helm and the field's usual first applications in
// simulations, as they are: charts are rendered by Helm's own library, as helm template
// does, and all that comes of them must become ready. It is a module of its own, so that
// the main one needs no Helm.
package charts
