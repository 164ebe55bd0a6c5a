"""The search for a model: limit paths, recipes, one judge. `covey.selection` has what users pass to it."""
