"""What people hold: the scikit-learn classifier, loaded models, ``prune``."""
