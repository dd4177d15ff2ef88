"""The dialect `tensor` of fragir's own contexts: xDSL's, and ours in the place of what it lacks."""
