"""swe-miner: from months of forge history to executable, provable, explainable software-engineering tasks."""
